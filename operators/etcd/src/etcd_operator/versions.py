"""Versions of etcd: their features, and the allowed upgrades."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from navarch.errors import InvalidValueError

_FORM: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[-.+].{0,64})?")


class EtcdVersion(NamedTuple):
    """A version of etcd; a suffix after the patch is ignored.

    >>> EtcdVersion.of("v3.5.21-0") < EtcdVersion.of("3.6.0")
    True
    """

    major: int
    minor: int
    patch: int

    @classmethod
    def of(cls, text: str) -> EtcdVersion:
        """Parses a version; raises `InvalidValueError`."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise InvalidValueError(f"expected a version such as 3.5.21, got {text[:64]!r}")
        return cls(int(found[1]), int(found[2]), int(found[3]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def has_learners(self) -> bool:
        """True if members can join as learners."""
        return self >= (3, 4, 0)

    @property
    def moves_leaders(self) -> bool:
        """True if leadership can be transferred; without it the others elect a leader after the old one stops."""
        return self >= (3, 3, 0)

    @property
    def has_metrics_port(self) -> bool:
        """True if health and metrics have a port of their own."""
        return self >= (3, 3, 0)

    @property
    def hashes_keys(self) -> bool:
        """True if a member reports a comparable hash of its keys at a revision."""
        return self >= (3, 3, 0)

    @property
    def confirms_members(self) -> bool:
        """True if the member list can be read linearizably."""
        return self >= (3, 5, 0)

    @property
    def raises_revisions(self) -> bool:
        """True if etcdutl can raise the revision on restore, so that revisions never go back for watchers."""
        return self >= (3, 5, 10)

    @property
    def may_diverge(self) -> bool:
        """True if a crash under load can corrupt a member silently (etcd 3.5.0 to 3.5.2)."""
        return (3, 5, 0) <= self <= (3, 5, 2)


_BEFORE_3_6: Final = EtcdVersion(3, 5, 20)
"""Older versions can have a member store that 3.6 refuses."""


def upgrade_refusal(old: EtcdVersion, new: EtcdVersion) -> str:
    """Returns why a cluster cannot be upgraded from the old to the new version; empty if it can.

    >>> upgrade_refusal(EtcdVersion(3, 5, 1), EtcdVersion(3, 5, 21))
    ''
    >>> upgrade_refusal(EtcdVersion(3, 4, 30), EtcdVersion(3, 6, 0))
    '3.4.30 cannot become 3.6.0 at once: go to 3.5 first'
    """
    if new.major != old.major:
        return f"{old} cannot become {new}: that is another major version"
    if new < old:
        return f"{old} cannot go back to {new}: restore a backup into a new cluster instead"
    if new.minor > old.minor + 1:
        return f"{old} cannot become {new} at once: go to {old.major}.{old.minor + 1} first"
    if (old.major, old.minor) == (3, 5) and new.minor == 6 and old < _BEFORE_3_6:
        return f"{old} cannot become {new} safely: go to {_BEFORE_3_6} or a later 3.5 first"
    return ""
