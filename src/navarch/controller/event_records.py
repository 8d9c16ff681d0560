"""An Event and its series: what is recorded, and how it is written when the same happens again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from navarch.api import Dynamic, Kind, MicroTime, Object
from navarch.api.names import DNS_SUBDOMAIN
from navarch.errors import InvalidValueError

if TYPE_CHECKING:
    from navarch.k8s.core.v1 import ObjectReference
    from navarch.k8s.events.v1 import Event

__all__ = ["EventRecord", "EventReporter", "EventSeriesState", "EventSubject", "EventType", "checked_word", "cut_note"]

EventType = Literal["Normal", "Warning"]

_LONGEST_NOTE = 1024
_LONGEST_WORD = 128
_LONGEST_NAME = 253
_HOME_OF_CLUSTER_SCOPED = "default"


class EventReporter(NamedTuple):
    """The reporting controller and its process."""

    controller: str
    instance: str


class EventSubject(NamedTuple):
    """The object that an event is about; without its resourceVersion, so that later events are equal."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    part: str = ""
    """The path of the part that is meant, such as `spec.containers{web}`; empty for the whole object."""

    @classmethod
    def of(cls, target: Object | Dynamic, part: str = "") -> EventSubject:
        """Returns the object, or a part of it, as a subject; raises `InvalidValueError` if it lacks its kind or name."""
        known = getattr(target, "_of", None)  # metadata alone has the name of its form on the wire, not of its kind
        kind = known if isinstance(known, Kind) else target
        if not (kind.api_version and kind.kind and target.name):
            raise InvalidValueError(
                f"expected an event about an object with apiVersion, kind and name, got {target.kind or 'no kind'} "
                f"{target.name!r}; record it about an object that was read from the server"
            )
        return cls(kind.api_version, kind.kind, target.namespace, target.name, _uid(target), part)

    def reference(self) -> ObjectReference:
        """Returns the reference in an Event."""
        from navarch.k8s.core.v1 import ObjectReference  # noqa: PLC0415 - large; not needed before an event is sent

        return ObjectReference(
            api_version=self.api_version,
            kind=self.kind,
            namespace=self.namespace or None,
            name=self.name,
            uid=self.uid or None,
            field_path=self.part or None,
        )


class EventRecord(NamedTuple):
    """One event. Two equal records are the same event happening again."""

    regarding: EventSubject
    related: EventSubject | None
    type: EventType
    reason: str
    action: str
    note: str
    controller: str = ""
    """Who says it, if that is not the recorder's own name."""

    @classmethod
    def of(
        cls,
        regarding: EventSubject,
        related: Object | Dynamic | None,
        *,
        type: EventType,  # noqa: A002 - Kubernetes' own word
        reason: str,
        action: str,
        note: str,
        controller: str = "",
    ) -> EventRecord:
        """Returns the record; raises `InvalidValueError` if the server would refuse it. Long notes are cut."""
        if type not in get_args(EventType):
            raise InvalidValueError(f"expected an event of type Normal or Warning, got {type!r}")
        return cls(
            regarding=regarding,
            related=None if related is None else EventSubject.of(related),
            type=type,
            reason=checked_word("reason", reason),
            action=checked_word("action", action),
            note=cut_note(note),
            controller=controller,
        )


@dataclass(slots=True)
class EventSeriesState:
    """One Event with its count, and how much of that count has been written."""

    record: EventRecord
    name: str
    first: datetime
    last: datetime
    seen_at: float
    due_at: float
    count: int = 1
    written: int = 0

    @classmethod
    def begun(cls, record: EventRecord, now: datetime, monotonic: float, rng: random.Random) -> EventSeriesState:
        """Returns the series of an event that happens for the first time; it is due at once."""
        name = _event_name(record.regarding.name, now, rng)
        return cls(record, name, first=now, last=now, seen_at=monotonic, due_at=monotonic)

    @property
    def namespace(self) -> str:
        """The namespace of the Event: `default` for cluster-scoped objects."""
        return self.record.regarding.namespace or _HOME_OF_CLUSTER_SCOPED

    def happened_again(self, now: datetime, monotonic: float) -> None:
        """Counts one more occurrence."""
        self.count += 1
        self.last, self.seen_at = now, monotonic

    def event(self, reporter: EventReporter) -> Event:
        """Returns the whole Event."""
        from navarch.k8s.events.v1 import Event, EventSeries  # noqa: PLC0415 - as above

        what = self.record
        series = EventSeries(count=self.count, last_observed_time=MicroTime.of(self.last))
        return Event(
            name=self.name,
            namespace=self.namespace,
            event_time=MicroTime.of(self.first),
            type=what.type,
            reason=what.reason,
            action=what.action,
            note=what.note,
            regarding=what.regarding.reference(),
            related=None if what.related is None else what.related.reference(),
            reporting_controller=what.controller or reporter.controller,
            reporting_instance=reporter.instance,
            series=series if self.count > 1 else None,
        )

    def changes(self) -> dict[str, Any]:
        """Returns the patch for an Event that exists."""
        return {"series": {"count": self.count, "lastObservedTime": MicroTime.of(self.last).to_wire()}}


def cut_note(note: str) -> str:
    """Returns the note cut to the server's limit of 1024 bytes, without half a character."""
    return note.encode(errors="replace")[:_LONGEST_NOTE].decode(errors="ignore")


def checked_word(field: str, word: str) -> str:
    """Returns the word; raises `InvalidValueError` if it is empty or longer than the server's limit in bytes."""
    if not word or len(word.encode(errors="replace")) > _LONGEST_WORD:
        raise InvalidValueError(
            f"expected the {field} of an event to be 1 to {_LONGEST_WORD} bytes, such as 'ScaledUp', "
            f"got {len(word)}: {word[:40]!r}; what is longer belongs into the note"
        )
    return word


def _event_name(name: str, now: datetime, rng: random.Random) -> str:
    """Returns a unique name for an Event from the object's name; characters that a name may not have are replaced."""
    number = f"{int(now.timestamp() * 1e6):x}{rng.getrandbits(24):06x}"
    head = DNS_SUBDOMAIN.suggest(name)[: _LONGEST_NAME - len(number) - 1].rstrip(".-")
    return f"{head or 'event'}.{number}"


def _uid(target: Object | Dynamic) -> str:
    if isinstance(target, Dynamic):
        return str((target.get("metadata") or {}).get("uid") or "")
    return target.metadata.uid
