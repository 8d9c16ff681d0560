"""Certificates and passwords: issued and renewed, read from Secrets, and looked at before anything is built on them."""

from etcd_operator.tls.checks import CredentialsError
from etcd_operator.tls.credentials import SECRETS_ROLE, CredentialCache, EtcdCredentials, secret_access_denied

__all__ = ["SECRETS_ROLE", "CredentialCache", "CredentialsError", "EtcdCredentials", "secret_access_denied"]
