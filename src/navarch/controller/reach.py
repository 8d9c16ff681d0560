"""What one controller reads from and writes through."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from navarch._base.clock import Clock
from navarch.api import Key, Kind
from navarch.cache import Collection, Entry
from navarch.client import Client
from navarch.controller.applied import Applied
from navarch.controller.events import Recorder
from navarch.controller.looks import Looks
from navarch.controller.unfollowed import Unfollowed
from navarch.controller.unreadable import Unreadable

__all__ = ["NoteOf", "OnWrite", "Reach", "Version", "Writer"]


class Writer(NamedTuple):
    """Who wrote: a controller, on behalf of one of its keys."""

    controller: str
    key: Key


class Version(NamedTuple):
    """One version of one object; the token of the reason "this changed" in a work queue."""

    kind: Kind
    key: Key
    version: int

    @property
    def object(self) -> tuple[Kind, Key]:
        """Which object it is a version of."""
        return self.kind, self.key

    @property
    def end(self) -> Version:
        """The token of the reason "this went" when that was the last version: it can be taken back on its own."""
        return Version(self.kind, self.key, -self.version)


OnWrite = Callable[[Writer, Version, Entry | None, Entry], None]
"""Told of each write that made a new version: by whom, which version, the object before (as far as known) and after."""

NoteOf = Callable[[Writer], Callable[[str], None] | None]
"""What is to be told the paths that a writer writes to without the cache's knowledge; None if nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Shared by all reconciles of one controller.

    `client` writes in the controller's name (its field manager) and only while it may. `collections` has what was
    declared by `owns`, `watches` and `reads`, and the primary kind; `owned` the kinds declared by `owns`. `retract` takes
    the change to that version back as a reason to reconcile the key. `applied` remembers across reconciles what need not
    be sent again: call `applied.forget(key)` when an object is gone. `looks` remembers what each reconcile looked at of
    the kinds that were declared by `reads` alone.
    """

    controller: str
    client: Client
    collections: Mapping[Kind, Collection[Any]]
    owned: frozenset[Kind]
    recorder: Recorder
    clock: Clock
    retract: Callable[[Key, Hashable], None]
    on_write: OnWrite | None = None
    note_of: NoteOf | None = None
    reporter: str = ""
    """Who its events are from, if that is not the recorder's own name."""
    applied: Applied = field(default_factory=Applied)
    unreadable: Unreadable = field(default_factory=Unreadable)
    unfollowed: Unfollowed = field(default_factory=Unfollowed)
    looks: Looks = field(default_factory=Looks)
