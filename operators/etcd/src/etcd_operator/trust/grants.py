"""What to do where the operator may not read or write the Secrets of a namespace: its administrator grants that, one by one."""

from __future__ import annotations

import re
from typing import Final

from navarch.errors import Forbidden

__all__ = ["SECRETS_ROLE", "not_granted"]

SECRETS_ROLE: Final = "etcd-operator-secrets"
"""The ClusterRole that is bound in each namespace whose Secrets the operator may use."""
_WHO: Final = re.compile(r'User "([^"\s]{1,512})" cannot ')
_ACCOUNT: Final = "system:serviceaccount:"
_LONGEST: Final = 300


def not_granted(doing: str, namespace: str, error: Forbidden) -> str:
    """In words, with the command that grants it. A quota or a policy refuses too: that is said as it is."""
    found = _WHO.search(error.message)
    if found is None:
        return f"Kubernetes does not let the operator {doing}: {error.message[:_LONGEST]}"
    who = found[1].removeprefix(_ACCOUNT)
    subject = f"--serviceaccount={who}" if found[1].startswith(_ACCOUNT) else f"--user={who}"
    command = (
        f"kubectl create rolebinding {SECRETS_ROLE} --namespace={namespace} --clusterrole={SECRETS_ROLE} {subject}"
    )
    return f"the operator is not allowed to {doing} in namespace {namespace}; to grant it: {command}"
