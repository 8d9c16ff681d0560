"""Levels and versions of the Pod Security Standards, and the labels by which a namespace chooses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from navarch.cluster.server.wire.causes import invalid
from navarch.errors import Cause

__all__ = ["LABEL_PREFIX", "PRIVILEGED", "Level", "LevelVersion", "Policy", "policy_of"]

LABEL_PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LARGEST_INT: Final = 2**63 - 1


class Level(IntEnum):
    """How much a policy forbids; a greater level forbids all that a lesser one does."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2


_LEVELS: Final = {each.name.lower(): each for each in Level}


class LevelVersion(NamedTuple):
    """A level as a minor version of Kubernetes 1 defined it; None is the latest version.

    >>> str(LevelVersion(Level.BASELINE, 25))
    'baseline:v1.25'
    """

    level: Level
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level.name.lower()}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


PRIVILEGED: Final = LevelVersion(Level.PRIVILEGED)


class Policy(NamedTuple):
    """What a namespace demands of its pods: `enforce` refuses, `audit` records, `warn` warns."""

    enforce: LevelVersion = PRIVILEGED
    audit: LevelVersion = PRIVILEGED
    warn: LevelVersion = PRIVILEGED

    @property
    def is_privileged(self) -> bool:
        """Whether it demands nothing."""
        return all(each.level == Level.PRIVILEGED for each in self)


_DEFAULT: Final = Policy()


class _Labels:
    """Reads the labels of one namespace and collects a cause for each value that it does not understand."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self.causes: list[Cause] = []

    def read(self, mode: str, *, fallback: Level) -> LevelVersion:
        """The level and version of a mode; `fallback` is the level in place of an unknown one."""
        level, version = Level.PRIVILEGED, None
        if (name := self._labels.get(f"{LABEL_PREFIX}{mode}")) is not None:
            level = _LEVELS.get(name, fallback)
            if name not in _LEVELS:
                self._refuse(mode, name, f"must be one of {', '.join(_LEVELS)}")
        if (text := self._labels.get(f"{LABEL_PREFIX}{mode}-version", "latest")) != "latest":
            match = _VERSION.fullmatch(text)
            version = int(match[1]) if match and int(match[1]) <= _LARGEST_INT else None
            if version is None:
                self._refuse(f"{mode}-version", text, 'must be "latest" or "v1.x"')
        return LevelVersion(level, version)

    def _refuse(self, label: str, value: str, why: str) -> None:
        self.causes.append(invalid(f"metadata.labels[{LABEL_PREFIX}{label}]", value, why))


def policy_of(labels: Mapping[str, str] | None) -> tuple[Policy, list[Cause]]:
    """The policy that labels ask for, and what is wrong with them.

    An unknown level is enforced as restricted, and neither audited nor warned of. A namespace that enforces a level and
    says nothing about warnings warns by the same level, since pods of its workloads will be refused.
    """
    if not labels or not any(label.startswith(LABEL_PREFIX) for label in labels):
        return _DEFAULT, []
    found = _Labels(labels)
    enforce = found.read("enforce", fallback=Level.RESTRICTED)
    is_understood = not any(cause.field.endswith("/enforce]") for cause in found.causes)
    audit = found.read("audit", fallback=Level.PRIVILEGED)
    warn = found.read("warn", fallback=Level.PRIVILEGED)
    if f"{LABEL_PREFIX}warn" not in labels and is_understood and enforce.level > warn.level:
        has_version = f"{LABEL_PREFIX}warn-version" in labels
        warn = LevelVersion(enforce.level, warn.minor if has_version else enforce.minor)
    return Policy(enforce, audit, warn), found.causes
