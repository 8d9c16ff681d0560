"""Certificates and passwords: the operator issues and renews them, reads them from Secrets, and checks them before use."""

from etcd_operator.tls.checks import CredentialsError
from etcd_operator.tls.credentials import SECRETS_ROLE, CredentialCache, EtcdCredentials, secret_access_denied

__all__ = ["SECRETS_ROLE", "CredentialCache", "CredentialsError", "EtcdCredentials", "secret_access_denied"]
