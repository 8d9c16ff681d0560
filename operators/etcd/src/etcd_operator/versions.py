"""Versions of etcd: what they can do, and which may follow which."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from navarch.errors import InvalidValueError

_FORM: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[-.+].{0,64})?")


class EtcdVersion(NamedTuple):
    """A version in its parts; what follows the patch does not count.

    >>> EtcdVersion.of("v3.5.21-0") < EtcdVersion.of("3.6.0")
    True
    """

    major: int
    minor: int
    patch: int

    @classmethod
    def of(cls, text: str) -> EtcdVersion:
        """Raises `InvalidValueError` for a text that is none."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise InvalidValueError(f"expected a version such as 3.5.21, got {text[:64]!r}")
        return cls(int(found[1]), int(found[2]), int(found[3]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def has_learners(self) -> bool:
        """Whether members can learn before they vote."""
        return self >= (3, 4, 0)

    @property
    def moves_leaders(self) -> bool:
        """Whether leadership can be handed over; without it, the others elect somebody when the leader goes."""
        return self >= (3, 3, 0)

    @property
    def has_metrics_port(self) -> bool:
        """Whether health and metrics can be asked for at a port of their own."""
        return self >= (3, 3, 0)

    @property
    def hashes_keys(self) -> bool:
        """Whether a member tells the hash of its keys at a revision, which can be compared."""
        return self >= (3, 3, 0)

    @property
    def confirms_members(self) -> bool:
        """Whether a quorum is asked who the members are; older ones answer from what they know."""
        return self >= (3, 5, 0)

    @property
    def raises_revisions(self) -> bool:
        """Whether its tool can raise the revision of what it restores, so that it never goes back for those who watch."""
        return self >= (3, 5, 10)

    @property
    def may_diverge(self) -> bool:
        """Whether a crash under load can leave a member with other data than the rest (etcd 3.5.0 to 3.5.2)."""
        return (3, 5, 0) <= self <= (3, 5, 2)


_BEFORE_3_6: Final = EtcdVersion(3, 5, 20)
"""Older ones can hold members in their store that 3.6 does not take."""


def upgrade_refusal(old: EtcdVersion, new: EtcdVersion) -> str:
    """Why a cluster of the old version cannot become one of the new; empty if it can.

    >>> why_not(EtcdVersion(3, 5, 1), EtcdVersion(3, 5, 21))
    ''
    >>> why_not(EtcdVersion(3, 4, 30), EtcdVersion(3, 6, 0))
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
