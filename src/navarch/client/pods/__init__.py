"""Logs, commands, terminals and ports of pods."""

from navarch.client.pods.exec import Attach, Exec, ExecResult
from navarch.client.pods.logs import LogLines, Logs
from navarch.client.pods.port_forward import Forwarding, Listener, PortForward
from navarch.client.pods.session import Output, Session
from navarch.client.pods.stream import PodStream

__all__ = ["ExecResult", "Listener", "LogLines", "Output", "PodStream", "PodVerbs", "PortForward", "Session"]


class PodVerbs(Logs, Exec, Attach, Forwarding):
    """logs, exec, attach and port_forward."""
