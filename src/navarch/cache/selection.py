"""Which objects are cached: of which kind and how much of each (`Cached`), and in which namespaces (`Namespaces`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

import msgspec

from navarch.api import Fields, Kind, Labels
from navarch.cache.entry import Entry, entry_of
from navarch.client import MetadataOnly
from navarch.client.list_body import ObjectHead
from navarch.client.target import Readable, kind_of
from navarch.errors import InvalidValueError

T = TypeVar("T")

IndexFunction = Callable[[Any], Iterable[str]]

_MAGIC = set("*?[")
_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


@dataclass(frozen=True, slots=True)
class Cached(Generic[T]):
    """A kind, and which of its objects, and how much of each, are cached.

    `labels` and `fields` select on the server. `namespaces` are names or patterns such as `team-*`; by default those of
    the operator. `metadata_only` never fetches the rest: reads return `PartialObjectMetadata`. `keep` names the only
    fields to keep beside the metadata, such as `("spec.nodeName", "status")`; the others read as unset. `indexes` name
    functions that return the values under which `ctx.list(..., index=("node", "n1"))` finds an object. `views` is the
    number of decoded objects that are kept for further reads.

    >>> from navarch.k8s.core.v1 import Pod
    >>> Cached(Pod, labels="app=web", keep=("status.phase",)).kind.plural
    'pods'
    """

    of: Readable[T]
    labels: Labels | str = ""
    fields: Fields | str = ""
    namespaces: tuple[str, ...] | None = None
    metadata_only: bool = False
    keep: tuple[str, ...] = ()
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict, compare=False)
    views: int = field(default=2048, compare=False)

    def __post_init__(self) -> None:
        kind_of(self.of)
        object.__setattr__(self, "labels", Labels(self.labels) if isinstance(self.labels, str) else self.labels)
        object.__setattr__(self, "fields", Fields(self.fields) if isinstance(self.fields, str) else self.fields)
        _refuse_text("keep", self.keep)
        _refuse_text("namespaces", self.namespaces)
        if self.metadata_only and self.keep:
            raise InvalidValueError("expected metadata_only or keep, got both; metadata_only keeps no other field")

    @property
    def kind(self) -> Kind:
        """The kind of the objects."""
        return kind_of(self.of)

    @property
    def scope(self) -> str:
        """The selectors in a few words; empty if there are none."""
        return " ".join(filter(None, (str(self.labels), str(self.fields))))

    @property
    def readable(self) -> Readable[Any]:
        """The target of requests: whole objects, or their metadata alone."""
        return MetadataOnly(self.of) if self.metadata_only else self.of  # type: ignore[arg-type]  # a class or a Kind

    def entry(self, data: bytes, head: ObjectHead | None = None) -> Entry:
        """Returns the entry for an object's JSON, with only the fields to keep."""
        return entry_of(_projected(data, self.keep) if self.keep else data, head)

    def written(self, data: bytes) -> Entry:
        """Returns the entry for the server's answer to a write, which is a whole object even if reads request metadata
        alone.
        """
        return entry_of(_metadata_alone(data)) if self.metadata_only else self.entry(data)


def as_cached(what: Readable[T] | Cached[T]) -> Cached[T]:
    """Returns `what` as a `Cached`; a bare kind means all of its objects."""
    return what if isinstance(what, Cached) else Cached(what)


def _refuse_text(name: str, value: object) -> None:
    """Refuses one text in place of several: it would be taken letter by letter."""
    if isinstance(value, str):
        raise InvalidValueError(f"expected a tuple of texts for {name}, got {value!r}; write {name}=({value!r},)")


def _metadata_alone(data: bytes) -> bytes:
    return msgspec.json.encode({**_PARTIAL, "metadata": msgspec.json.decode(data)["metadata"]})


def _projected(data: bytes, keep: tuple[str, ...]) -> bytes:
    whole = msgspec.json.decode(data)
    kept = {name: whole[name] for name in ("apiVersion", "kind", "metadata") if name in whole}
    for path in keep:
        _copy(whole, kept, path.split("."))
    return msgspec.json.encode(kept)


def _copy(source: dict[str, Any], target: dict[str, Any], path: list[str]) -> None:
    """Copies the value at `path`, with the levels above it; nothing if there is no value."""
    name, *rest = path
    if name not in source:
        return
    if rest and isinstance(source[name], dict):
        _copy(source[name], target.setdefault(name, {}), rest)
    else:
        target[name] = source[name]


class Namespaces:
    """Names and patterns of namespaces; none means all of them. They may change at run time.

    A pattern has `*` and `?`; one that begins with `!` excludes the namespaces that it matches.

    >>> team = Namespaces("team-*", "!team-x")
    >>> team.match("team-a"), team.match("team-x"), team.match("default")
    (True, False, False)
    >>> Namespaces().match("anything")
    True
    """

    def __init__(self, *patterns: str) -> None:
        self._patterns = _checked(patterns)
        self._listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Namespaces({', '.join(map(repr, self._patterns))})"

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names and patterns as they were given."""
        return self._patterns

    @property
    def all(self) -> bool:
        """True if every namespace is selected, so that one watch serves all."""
        return not self._patterns

    @property
    def names(self) -> frozenset[str] | None:
        """The namespaces, if they are known without a list of the cluster's namespaces."""
        if self.all or any(pattern.startswith("!") or _MAGIC & set(pattern) for pattern in self._patterns):
            return None
        return frozenset(self._patterns)

    def match(self, namespace: str) -> bool:
        """Returns True if this namespace is selected."""
        wanted = [pattern for pattern in self._patterns if not pattern.startswith("!")]
        unwanted = [pattern[1:] for pattern in self._patterns if pattern.startswith("!")]
        return (not wanted or _any_match(namespace, wanted)) and not _any_match(namespace, unwanted)

    def change(self, *patterns: str) -> None:
        """Selects other namespaces: watches of new ones start, watches of removed ones end."""
        self._patterns = _checked(patterns)
        for listener in list(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` after every change."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Removes the listener."""
        self._listeners.remove(listener)


def _any_match(namespace: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)


def _checked(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if not pattern.strip("!"):
            raise InvalidValueError(
                f"expected the name or pattern of namespaces, got {pattern!r}; leave it out for all"
            )
    return tuple(dict.fromkeys(patterns))
