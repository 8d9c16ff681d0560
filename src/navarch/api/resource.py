"""`Resource`: one class that is model, CRD, client type and documentation."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec

from navarch.api.codec import decode, encode
from navarch.api.kind import Kind
from navarch.api.markers import Column, OneOf, Rule, Scale
from navarch.api.meta import ObjectMeta
from navarch.api.model import Default, Model, ModelType, Struct, required_fields
from navarch.errors import DefinitionError

__all__ = ["Declaration", "Object", "ObjectType", "Resource"]

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a class says about its kind that only a CRD needs; the class keywords of `Object` in one place."""

    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    served: bool = True
    storage: bool = True
    deprecated: bool | str = False
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class ObjectType(ModelType):
    """The metaclass behind `Object`: takes the kind from class keywords and the name from the constructor."""

    __kind__: Kind
    __declaration__: Declaration

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        group: str | None = None,
        version: str | None = None,
        kind: str | None = None,
        plural: str | None = None,
        namespaced: bool = True,
        has_status: bool | None = None,
        rules: tuple[Rule, ...] = (),
        one_of: tuple[OneOf, ...] = (),
        **declared: Any,
    ) -> Any:
        options: dict[str, Any] = {"rules": rules, "one_of": one_of, "dict": True}
        if version is None:
            given = {"group": group, "kind": kind, "plural": plural, "has_status": has_status}
            scope = {} if namespaced else {"namespaced": namespaced}
            _refuse_without_version(name, given | scope | declared)
            return super().__new__(mcls, name, bases, namespace, **options)
        kind = kind or name
        spec_and_status = _spec_and_status(namespace)
        if has_status is None:
            has_status = spec_and_status[1:] != (NoneType,)
        served_as = Kind(
            group or "",
            version,
            kind,
            plural=plural or _plural(kind),
            namespaced=namespaced,
            has_status=has_status,
        )
        _fix_type(namespace, served_as)
        for field, struct in zip(("spec", "status"), spec_and_status, strict=False):
            _default_to_empty(namespace, name, field, struct)
        cls = super().__new__(mcls, name, bases, namespace, **options)
        cls.__kind__ = served_as
        cls.__declaration__ = _declaration(name, kind, declared)
        return cls

    if not TYPE_CHECKING:

        def __call__(cls, *, metadata: ObjectMeta | None = None, **fields: Any) -> Any:  # noqa: N805 - a class is called
            """`name`, `namespace`, `labels` and `annotations` go into the metadata."""
            given = {key: fields.pop(key) for key in _METADATA_SHORTCUTS if key in fields}
            metadata = ObjectMeta() if metadata is None else metadata
            return super().__call__(metadata=msgspec.structs.replace(metadata, **given), **fields)


_OPTIONAL: Any = None  # whether a spec may be left out depends on its fields; type checkers are told that it may
_METADATA_SHORTCUTS = ("name", "namespace", "labels", "annotations")


def _refuse_without_version(name: str, declared: dict[str, Any]) -> None:
    keywords = [keyword for keyword, value in declared.items() if value is not None]
    if keywords:
        raise DefinitionError(f'class {name}: expected version= beside {", ".join(keywords)}=; add version="v1alpha1"')


def _declaration(name: str, kind: str, declared: dict[str, Any]) -> Declaration:
    unknown = declared.keys() - set(Declaration.__dataclass_fields__)
    if unknown:
        known = ", ".join(sorted(Declaration.__dataclass_fields__))
        raise DefinitionError(f"class {name}: unknown keyword {', '.join(sorted(unknown))}; expected one of {known}")
    return Declaration(**({"singular": kind.lower()} | declared))


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        return word[:-1] + "ies"
    return word + "s"


def _spec_and_status(namespace: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of `Resource[...]` among the bases; empty for a kind that declares its own fields."""
    for base in namespace.get("__orig_bases__", ()):
        if isinstance(get_origin(base), ObjectType):
            return get_args(base)
    return ()


def _fix_type(namespace: dict[str, Any], kind: Kind) -> None:
    """Objects of another kind do not decode as this one; the constants cost no memory per object."""
    annotations = namespace.setdefault("__annotations__", {})
    for field, constant in (("api_version", kind.api_version), ("kind", kind.kind)):
        annotations[field] = Literal[constant]
        namespace[field] = constant


def _default_to_empty(namespace: dict[str, Any], owner: str, field: str, struct: Any) -> None:
    """A spec or status in which every field has a default is itself optional; a status has to be."""
    if struct is NoneType:
        namespace["__annotations__"][field] = None
        namespace[field] = None
        return
    if not (isinstance(struct, type) and issubclass(struct, Model)):
        return
    required = required_fields(struct)
    if not required:
        namespace["__annotations__"][field] = struct
        namespace[field] = msgspec.field(default_factory=Default(struct))
    elif field == "status":
        raise DefinitionError(
            f"class {owner}: a new object has no status yet, so every field of {struct.__name__} needs a default; "
            f"got none for {', '.join(required)}: write `{required[0]}: ... | None = None`"
        )


def _metadata_view(field: str) -> property:
    def get(self: Object) -> Any:
        return getattr(self.metadata, field)

    def put(self: Object, value: Any) -> None:
        setattr(self.metadata, field, value)

    return property(get, put, doc=f"`metadata.{field}`.")


class Object(Struct, metaclass=ObjectType):
    """An object of some kind. A kind without spec and status (like ConfigMap) subclasses it and adds its own fields.

    `name`, `namespace`, `labels` and `annotations` can be given to the constructor and are views of `metadata`.
    """

    __kind__: ClassVar[Kind]
    __declaration__: ClassVar[Declaration]
    __rules__: ClassVar[tuple[Rule, ...]]
    __one_of__: ClassVar[tuple[OneOf, ...]]

    if TYPE_CHECKING:
        name: str = ""
        namespace: str = ""
        labels: dict[str, str] = {}
        annotations: dict[str, str] = {}
        metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

        @property
        def api_version(self) -> str:
            """As it stands in a manifest: `apps/v1`."""

        @property
        def kind(self) -> str:
            """The kind's name."""

        def __init_subclass__(
            cls,
            *,
            group: str | None = None,
            version: str | None = None,
            kind: str | None = None,
            plural: str | None = None,
            namespaced: bool = True,
            has_status: bool | None = None,
            rules: tuple[Rule, ...] = (),
            one_of: tuple[OneOf, ...] = (),
            singular: str = "",
            short_names: tuple[str, ...] = (),
            categories: tuple[str, ...] = (),
            columns: tuple[Column, ...] = (),
            scale: Scale | None = None,
            served: bool = True,
            storage: bool = True,
            deprecated: bool | str = False,
            labels: dict[str, str] | None = None,
            annotations: dict[str, str] | None = None,
        ) -> None: ...

    else:
        api_version: str = ""
        kind: str = ""
        metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

        name = _metadata_view("name")
        namespace = _metadata_view("namespace")
        labels = _metadata_view("labels")
        annotations = _metadata_view("annotations")

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The object that `data` is; it remembers `data`, so that nothing is lost when it is written back.

        Raises `DecodeError` naming the object and the field.
        """
        found = decode(cls, data)
        vars(found)["_wire"] = data
        return found

    def copy(self) -> Self:
        """A private copy, down to the last list. It still knows the fields its model does not."""
        twin = decode(type(self), encode(self))
        vars(twin).update(vars(self))
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()


class Resource(Object, Generic[S, T]):
    """A custom kind: what is wanted (`spec`) and what is (`status`). `Resource[MySpec, None]` has no status.

    Class keywords: `group` and `version` (required), `kind`, `plural`, `singular`, `short_names`, `categories`,
    `namespaced`, `columns`, `scale`, `rules`, `one_of`, `served`, `storage`, `deprecated`, `labels`, `annotations`.

    >>> from navarch.api import Spec, Status
    >>> class MemcachedSpec(Spec):
    ...     size: int = 1
    >>> class Memcached(Resource[MemcachedSpec, Status], group="cache.example.com", version="v1alpha1"):
    ...     ...
    >>> Memcached(name="cache", spec=MemcachedSpec(size=3)).spec.size
    3
    >>> Memcached.__kind__.resource
    'memcacheds.cache.example.com'
    """

    if TYPE_CHECKING:
        spec: S = _OPTIONAL
        status: T = _OPTIONAL
    else:
        spec: S
        status: T
