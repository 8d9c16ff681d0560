"""Certificates and passwords: issued and renewed, read from Secrets, and looked at before anything is built on them."""

from etcd_operator.trust.checking import FaultError
from etcd_operator.trust.grants import SECRETS_ROLE, not_granted
from etcd_operator.trust.keyring import Keyring
from etcd_operator.trust.keys import Keys

__all__ = ["SECRETS_ROLE", "FaultError", "Keyring", "Keys", "not_granted"]
