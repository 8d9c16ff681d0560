"""Configuration: where the API server is, how to trust it, and who is asking.

`load` finds what kubectl would use, `in_cluster` what a pod was given; `Config` can also be made by hand.
`Config.authenticator` is what the transport asks for headers and TLS.
"""

from navarch.client.config.authenticator import Authenticator
from navarch.client.config.credentials import Credential
from navarch.client.config.incluster import in_cluster
from navarch.client.config.kubeconfig import load
from navarch.client.config.model import Config, ExecPlugin, Impersonation, default_user_agent
from navarch.client.config.validity import diagnose_certificate

__all__ = [
    "Authenticator",
    "Config",
    "Credential",
    "ExecPlugin",
    "Impersonation",
    "default_user_agent",
    "diagnose_certificate",
    "in_cluster",
    "load",
]
