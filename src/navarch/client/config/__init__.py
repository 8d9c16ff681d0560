"""The client's configuration: the address of the API server, its CA, and the credential.

`load` finds the configuration that kubectl would use, `in_cluster` that of a pod; `Config` can also be created by hand.
`Authenticator` supplies headers and TLS contexts to the transport.
"""

from navarch.client.config.authenticator import Authenticator
from navarch.client.config.credentials import Credential
from navarch.client.config.environment import in_cluster
from navarch.client.config.kubeconfig import load
from navarch.client.config.model import Config, ExecPlugin, Impersonation, default_user_agent
from navarch.client.config.tls import diagnose_certificate

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
