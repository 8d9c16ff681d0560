"""What runs in pods: logs, commands, terminals and ports."""

from navarch.client.pods.attach import Attach
from navarch.client.pods.exec import Exec, ExecResult
from navarch.client.pods.forward import Forwarding, PortForward
from navarch.client.pods.listen import Listener
from navarch.client.pods.logs import LogLines, Logs
from navarch.client.pods.session import Output, Session
from navarch.client.pods.stream import PodStream

__all__ = ["ExecResult", "Listener", "LogLines", "Output", "PodStream", "Pods", "PortForward", "Session"]


class Pods(Logs, Exec, Attach, Forwarding):
    """logs, exec, attach and port_forward."""
