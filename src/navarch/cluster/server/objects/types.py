"""`ResourceType` and `Catalog`: the server's knowledge of one kind, and of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from navarch.cluster.server.wire.request import Json, User
from navarch.errors import Cause


class WriteContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy may want to know about the request it is called for."""

    user: User
    namespace: str = ""
    dry_run: bool = False
    manager: str = ""
    now: str = ""
    """When it came, as objects have it."""


class KindSchema(Protocol):
    """The shape of objects of one kind and version."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The schema as JSON, references resolved where they are used for merging: list types, map keys, patch keys."""
        ...

    def zero(self) -> Json:
        """An object in which nothing is set, as it is written: some members are there nevertheless."""
        ...

    def unknown_fields(self, value: Json) -> list[str]:
        """Drops, in place, fields that the schema does not know; returns their paths, as field validation names them."""
        ...

    def faults(self, value: Json) -> list[Cause]:
        """What does not fit the types: what a Go server could not decode."""
        ...


class Strategy(Protocol):
    """What depends on the kind. All methods work in place on a private copy, and are called in the order of the table in
    docs/designs/embedded-server.md.
    """

    def default(self, value: Json) -> None:
        """Fills in defaults."""
        ...

    def prepare_create(self, value: Json, operation: WriteContext) -> None:
        """Drops what a client may not set (a status, where that is a subresource) and sets what the server does."""
        ...

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """The same for an update; counts the generation up where the spec differs."""
        ...

    def validate_create(self, value: Json) -> list[Cause]:
        """Every fault."""
        ...

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Every fault, immutable fields included."""
        ...

    def warnings(self, value: Json, old: Json | None) -> list[str]:
        """What the client should know: deprecated fields, names that will be refused some day."""
        ...

    def grace_seconds(self, value: Json, asked: int | None) -> int:
        """How long a deletion waits for the object to end; 0 for most kinds."""
        ...

    def selectable_fields(self, value: Json) -> Mapping[str, str]:
        """The fields that field selectors may name, beside `metadata.name` and `metadata.namespace`."""
        ...

    def cells(self, value: Json) -> list[Any]:
        """The cells of its row in a table, one for each column, as `kubectl get` shows it."""
        ...


class TableColumn(msgspec.Struct, frozen=True):
    """A column of a table."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Json:
        """As a Table has it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an object with a path of its own. `strategy` is None where an endpoint of its own serves it."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")
    strategy: Strategy | None = None


class FieldReset(msgspec.Struct, frozen=True):
    """Fields that a write leaves as they were, as trees of FieldsV1: those `excluded`, or all but `only` some."""

    excluded: Mapping[str, Any]
    only: Mapping[str, Any] | None = None


class DeletionRules(msgspec.Struct, frozen=True, kw_only=True):
    """The deletion of a kind's objects; the defaults are the behaviour of most kinds."""

    orphans_dependents: bool = False
    """A deletion that does not say otherwise orphans the dependents."""
    orphan_warning: str = ""
    """The warning about such a deletion."""
    has_dependents: bool = True
    """The propagation policy of a deletion applies."""
    marks_first: bool = False
    """An object that waits for nothing is stored with its deletion mark before it is removed."""
    has_spec_finalizers: bool = False
    """`spec.finalizers` delay the removal, too."""
    checks_in_storage: bool = False
    """Preconditions are reported in the words of Kubernetes' storage."""


class ResourceType(msgspec.Struct, frozen=True, kw_only=True):
    """One resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    schema: KindSchema
    strategy: Strategy
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    subresources: Mapping[str, Subresource] = msgspec.field(default_factory=dict)
    storage_version: str = ""
    storage_prefix: str = ""
    """`/registry/pods/`: objects are under it by namespace and name."""
    is_custom: bool = False
    unconditional_update: bool = True
    """Whether an update may leave out the resource version, and then overwrites whatever is there."""
    create_on_update: bool = False
    """Whether an update of an object that is not there creates it."""
    returns_deleted: bool = False
    """Whether a deletion that is done at once is answered with the object instead of a Status."""
    convert: Callable[[Sequence[Json], str], Any] | None = None
    """For kinds with several versions: objects in another version (by apiVersion), as a coroutine; None if all are alike."""
    reshape: Callable[[Json], None] | None = None
    """Brings an object that was stored before `shaped_at` into the shape of today's schema when it is read."""
    shaped_at: int = 0
    """The revision since which objects are stored in the shape of today's schema."""
    mark_deleted: Callable[[Json], None] | None = None
    """Adds to an object that is marked for deletion what its kind adds: a finalizer, a condition."""
    deletion: DeletionRules = DeletionRules()
    has_watch_cache: bool = True
    """Malformed resource versions are reported in the words of Kubernetes' watch cache."""
    selects_namespace: bool = True
    """Field selectors may name `metadata.namespace`."""
    unknown_field_label: str = ""
    """The message about a field selector that names `{path}`; empty for the usual one."""
    is_own_namespace: bool = False
    """Whether paths below a namespace of the same name lead to it: `/api/v1/namespaces/a/finalize`."""
    hidden_annotation: str = ""
    """An annotation that whole objects have, and answers with metadata alone lack."""
    stored_as: tuple[str, str] | None = None
    """The group and version in which Kubernetes stores the kind, if neither is the one that is served."""
    reset_fields: Mapping[str, FieldReset] = msgspec.field(default_factory=dict)
    """By subresource ("" is the object itself) of a built-in kind: the fields that the manager of a write does not own."""
    deprecation: str = ""
    """What clients of a deprecated version are warned of."""

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored."""
        return f"{self.storage_prefix}{namespace}/{name}" if self.namespaced else f"{self.storage_prefix}{name}"

    def prefix(self, namespace: str = "") -> str:
        """Where the objects of a namespace, or all, are stored."""
        return f"{self.storage_prefix}{namespace}/" if self.namespaced and namespace else self.storage_prefix


class Catalog:
    """Every resource that is served right now; CRDs come and go."""

    def __init__(self, types: Sequence[ResourceType] = ()) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self._listeners: list[Callable[[], None]] = []
        for each in types:
            self.add(each)

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(tuple(self._types.values()))

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """The resource of that path."""
        return self._types.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The resource whose objects say they are this."""
        group, _, version = api_version.rpartition("/")
        return next((each for each in self if (each.group, each.version, each.kind) == (group, version, kind)), None)

    def add(self, resource: ResourceType) -> None:
        """Serves it from now on, in the place of the one of the same path."""
        self._types[resource.group, resource.version, resource.plural] = resource
        self._tell()

    def remove(self, group: str, version: str, plural: str) -> None:
        """Serves it no more."""
        if self._types.pop((group, version, plural), None) is not None:
            self._tell()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls it whenever what is served changes: discovery and OpenAPI are made anew."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def version_priority(version: str) -> tuple[int, int, int]:
    """Kubernetes' order: v2 before v1 before v1beta2 before v1alpha1; other names come last.

    >>> sorted(["v1", "v1alpha1", "v2beta1", "v2"], key=version_priority, reverse=True)
    ['v2', 'v1', 'v2beta1', 'v1alpha1']
    """
    digits = version[1:]
    for rank, word in ((1, "beta"), (0, "alpha")):
        major, found, minor = digits.partition(word)
        if found and major.isdecimal() and minor.isdecimal():
            return rank, int(major), int(minor)
    return (2, int(digits), 0) if version.startswith("v") and digits.isdecimal() else (-1, 0, 0)
