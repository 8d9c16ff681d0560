"""`Resource`: one class is the model, the CRD, the client's type and the documentation."""

from __future__ import annotations

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
from navarch.api.declaration import (
    OF_MODEL,
    Declaration,
    declaration_of,
    given,
    kind_of,
    refuse_other_types,
    refuse_unknown,
    refuse_without_version,
    with_inherited,
)
from navarch.api.kind import Kind
from navarch.api.markers import Column, OneOf, Rule, Scale
from navarch.api.meta import ObjectMeta
from navarch.api.model import Default, Model, ModelType, Struct, required_fields
from navarch.errors import DefinitionError, InvalidValueError

S = TypeVar("S")
T = TypeVar("T")


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class ObjectType(ModelType):
    """The metaclass of `Object`: takes the kind from class keywords and the name from the constructor."""

    __kind__: Kind
    __declaration__: Declaration

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any) -> Any:
        keywords = given(keywords)
        refuse_unknown(name, keywords)
        refuse_other_types(name, keywords)
        options = {keyword: keywords.pop(keyword) for keyword in OF_MODEL if keyword in keywords}
        if "version" not in keywords:
            refuse_without_version(name, keywords)
            return super().__new__(mcls, name, bases, namespace, dict=True, gc=True, **options)
        spec_and_status = _spec_and_status(namespace)
        if spec_and_status:
            keywords = {"has_status": spec_and_status[1:] != (NoneType,)} | keywords
        keywords = with_inherited(bases, keywords)
        kind = kind_of(name, keywords, custom=any(issubclass(base, Resource) for base in bases))
        declaration = declaration_of(name, kind, keywords)
        _fix_type(namespace, kind)
        for field, struct in zip(("spec", "status"), spec_and_status, strict=False):
            _declare_part(namespace, name, field, struct)
        cls = super().__new__(mcls, name, bases, namespace, dict=True, gc=True, **options)
        cls.__kind__, cls.__declaration__ = kind, declaration
        return cls

    if not TYPE_CHECKING:

        def __call__(cls, *positional: Any, metadata: ObjectMeta | None = None, **fields: Any) -> Any:
            """Creates an object; `name`, `namespace`, `labels` and `annotations` go into its metadata."""
            if positional:
                raise TypeError(
                    f"{cls.__name__}() takes keywords alone, got {len(positional)} positional; "
                    f"write {cls.__name__}(name=...)"
                )
            shortcuts = {key: fields.pop(key) for key in _METADATA_SHORTCUTS if key in fields}
            if metadata is None:
                return super().__call__(metadata=ObjectMeta(**shortcuts), **fields)
            _refuse_contradiction(cls.__name__, metadata, shortcuts)
            return super().__call__(metadata=msgspec.structs.replace(metadata, **shortcuts), **fields)


_OPTIONAL: Any = None  # whether a spec may be left out depends on its fields; type checkers are told that it may
_METADATA_SHORTCUTS = ("name", "namespace", "labels", "annotations")


def _refuse_contradiction(name: str, metadata: ObjectMeta, shortcuts: dict[str, Any]) -> None:
    for key, value in shortcuts.items():
        other = getattr(metadata, key)
        if other and other != value:
            raise InvalidValueError(
                f"{name}: expected one {key}, got {key}={value!r} and metadata.{key}={other!r}; give it once"
            )


def _spec_and_status(namespace: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the arguments of `Resource[...]` among the bases; empty for a kind that declares its own fields."""
    for base in namespace.get("__orig_bases__", ()):
        if isinstance(get_origin(base), ObjectType):
            return get_args(base)
    return ()


def _fix_type(namespace: dict[str, Any], kind: Kind) -> None:
    """Sets apiVersion and kind as constants: objects of another kind do not decode, and objects spend no memory on
    them.
    """
    annotations = namespace.setdefault("__annotations__", {})
    for field, constant in (("api_version", kind.api_version), ("kind", kind.kind)):
        annotations[field] = Literal[constant]
        namespace[field] = constant


def _declare_part(namespace: dict[str, Any], owner: str, field: str, struct: Any) -> None:
    """Declares a spec or status; one in which every field has a default is optional, as a status must be."""
    if isinstance(struct, TypeVar):
        return
    namespace["__annotations__"][field] = struct
    if struct is NoneType:
        namespace[field] = None
        return
    if not (isinstance(struct, type) and issubclass(struct, Model)):
        return
    required = required_fields(struct)
    if not required:
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


class _Remembering:
    """Holds the bytes that an object was decoded from in a slot: a dict for each object costs as much as its labels."""

    __slots__ = ("__wire__",)
    __wire__: bytes


class Object(_Remembering, Struct, metaclass=ObjectType):
    """An object of a kind. A kind without spec and status (like ConfigMap) subclasses it and adds its own fields.

    The constructor takes `name`, `namespace`, `labels` and `annotations`, which are views of `metadata`.
    """

    __kind__: ClassVar[Kind]
    __declaration__: ClassVar[Declaration]
    __rules__: ClassVar[tuple[Rule, ...]]
    __one_of__: ClassVar[tuple[OneOf, ...]]
    __sensitive__: ClassVar[tuple[str, ...]]

    if TYPE_CHECKING:
        name: str = ""
        namespace: str = ""
        labels: dict[str, str] = {}
        annotations: dict[str, str] = {}
        metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

        @property
        def api_version(self) -> str:
            """The apiVersion as a manifest has it: `apps/v1`."""

        @property
        def kind(self) -> str:
            """The name of the kind."""

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
            sensitive: tuple[str, ...] = (),
            singular: str = "",
            list_kind: str = "",
            short_names: tuple[str, ...] = (),
            categories: tuple[str, ...] = (),
            columns: tuple[Column, ...] = (),
            age_column: bool = True,
            scale: Scale | None = None,
            served: bool = True,
            storage: bool = True,
            deprecated: bool | str = False,
            labels: dict[str, str] | None = None,
            annotations: dict[str, str] | None = None,
            schema_patch: dict[str, Any] | None = None,
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
        """Decodes an object, which remembers `data`: writing it back keeps the fields that its model lacks.

        Raises `DecodeError` with the object and the path of the field.
        """
        found = decode(cls, data)
        found.__wire__ = data
        return found

    def copy(self) -> Self:
        """Returns a deep copy, which keeps the fields that the model lacks."""
        twin = decode(type(self), encode(self))
        vars(twin).update(vars(self))
        if hasattr(self, "__wire__"):
            twin.__wire__ = self.__wire__
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the bytes that it was decoded from as well: another process keeps unknown fields too."""
        return _unpickled, (type(self), encode(self), getattr(self, "__wire__", None), vars(self))


def _unpickled(cls: type[Object], data: bytes, wire: bytes | None, extras: dict[str, Any]) -> Object:
    found = decode(cls, data)
    vars(found).update(extras)
    if wire is not None:
        found.__wire__ = wire
    return found


class Resource(Object, Generic[S, T]):
    """A custom kind with a desired state (`spec`) and an observed state (`status`). `Resource[MySpec, None]` has no
    status.

    Class keywords: `group` and `version` (required), `kind`, `plural`, `singular`, `list_kind`, `short_names`,
    `categories`, `namespaced`, `columns`, `age_column`, `scale`, `rules`, `one_of`, `sensitive`, `served`, `storage`,
    `deprecated`, `labels`, `annotations`, `schema_patch`. A second version is a subclass: `class MemcachedV1(Memcached, version="v1", storage=False)` is the
    same kind.

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

        def __class_getitem__(cls, arguments: Any) -> Any:
            parts = arguments if isinstance(arguments, tuple) else (arguments,)
            if cls is Resource and len(parts) != 2:
                names = ", ".join(getattr(argument, "__name__", str(argument)) for argument in parts)
                raise DefinitionError(
                    f"expected Resource[spec, status], got Resource[{names}]; "
                    f"for a kind without a status write Resource[{names.split(',')[0]}, None]"
                )
            return super().__class_getitem__(arguments)
