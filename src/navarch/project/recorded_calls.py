"""`config/rbac/recorded.json`: the calls that tests saw the operator's client make."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from navarch.errors import ConfigError
from navarch.operator.roles import Permission
from navarch.project.files import read_text, write_files

RECORDED_FILE: Final = "config/rbac/recorded.json"
_VERSION: Final = 1

Where = Literal["cluster", "namespace", "own"]
"""A call on the whole cluster or on a cluster-scoped kind, in some namespace, or in the operator's own namespace."""


class RecordedCall(msgspec.Struct, frozen=True, order=True, kw_only=True, omit_defaults=True):
    """A verb on a resource, the place in the code that used it, and one test in which it did."""

    group: str = ""
    resource: str
    subresource: str = ""
    verb: str
    where: Where
    line: str = ""
    """The line of the user's code, as `src/cache_operator/controllers/memcached.py:24`; empty for a call of the runtime."""
    by: str
    """The function of the line or, for a call of the runtime, the declaration that leads to it."""
    test: str
    """The node id of the test."""

    @property
    def permission(self) -> Permission:
        """Returns the permission, whose namespace is not known."""
        return Permission(self.verb, self.group, self.resource, self.subresource)

    @property
    def place(self) -> str:
        """Returns the file and the function, which stay the same when lines move; else the declaration."""
        return f"{self.by} in {self.line.rpartition(':')[0]}" if self.line else self.by


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file: sorted, and the same for the same calls."""

    version: int = _VERSION
    calls: tuple[RecordedCall, ...] = ()

    @staticmethod
    def read(root: Path) -> Recording | None:
        """Returns the recording of the project in that folder; None if there is none. Raises `ConfigError`."""
        text = read_text(root / RECORDED_FILE)
        return None if text is None else Recording.parse(text)

    @staticmethod
    def parse(text: str) -> Recording:
        """Reads the text of the file. Raises `ConfigError`, with the remedy, for anything else."""
        remedy = f"remove {RECORDED_FILE} and record anew: pytest --record-permissions"
        try:
            found = msgspec.json.decode(text, type=Recording)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"{RECORDED_FILE}: expected recorded permissions, got something else: {error}; {remedy}"
            ) from None
        if found.version != _VERSION:
            raise ConfigError(f"{RECORDED_FILE}: expected version {_VERSION}, got {found.version}; {remedy}")
        return found

    def text(self) -> str:
        """Returns the content of the file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def write(self, root: Path) -> bool:
        """Writes the file of the project in that folder, and returns whether it changed."""
        return bool(write_files(root, {RECORDED_FILE: self.text()}))


def recording_of(
    seen: Iterable[RecordedCall], before: Recording | None, *, ran: Collection[str], left_out: Collection[str]
) -> Recording:
    """Returns the recording after a session in which the tests `ran` were run, and `left_out` exist but were not run.

    Each call of one place is recorded once. Its test is the one of `before` if that ran again, else the first by name, so
    that a second run writes the same bytes. Calls of tests that were left out stay.
    """
    known = {_place(call): call.test for call in (before.calls if before is not None else ())}
    found: dict[tuple[str, ...], RecordedCall] = {}
    for call in (*seen, *(call for call in (before.calls if before else ()) if call.test in left_out)):
        other = found.get(_place(call))
        if other is None or call.test < other.test:
            found[_place(call)] = call
    for place, call in found.items():
        if known.get(place, call.test) in ran:
            found[place] = msgspec.structs.replace(call, test=known.get(place, call.test))
    return Recording(calls=tuple(sorted(found.values())))


def _place(call: RecordedCall) -> tuple[str, ...]:
    return call.group, call.resource, call.subresource, call.verb, call.where, call.line, call.by
