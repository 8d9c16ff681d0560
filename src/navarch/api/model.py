"""`Model`: a struct of a kind's schema, with snake_case names in Python and camelCase names on the wire.

A field is sent if and only if it has a value; None means unset. A default of the class is a value like any other: it is
sent even if the caller did not set it, so that server-side apply never gives up the field by accident. msgspec omits
fields that equal a plain default, so a factory that it cannot compare holds every default but None.
"""

from __future__ import annotations

import copy
import functools
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform, get_origin

import msgspec

from navarch.api.markers import OneOf, Rule, masked_repr, masked_rich_repr
from navarch.errors import DefinitionError

field = msgspec.field
"""Gives a field another wire name: `cluster_ip: str = field(name="clusterIP")`."""

_SHAREABLE = (str, bytes, int, float, bool, tuple, frozenset)
_Field = type(msgspec.field())


class Default(functools.partial[Any]):
    """A default that is always sent. Calling it returns a separate value for each object."""

    @classmethod
    def of(cls, value: Any) -> Default:
        """Returns a default for a value; each object gets its own copy of a mutable one."""
        if isinstance(value, (list, dict, set)) and not value:
            return cls(type(value))
        return cls(_same, value) if isinstance(value, _SHAREABLE) else cls(copy.deepcopy, value)


def _same(value: Any) -> Any:
    return value


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class ModelType(msgspec.StructMeta):
    """The metaclass of `Model`: sets the wire names and keeps the class keywords of the schema."""

    __rules__: tuple[Rule, ...]
    __one_of__: tuple[OneOf, ...]
    __sensitive__: tuple[str, ...]

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        rules: tuple[Rule, ...] = (),
        one_of: tuple[OneOf, ...] = (),
        sensitive: tuple[str, ...] = (),
        omit_empty: bool = False,
        **config: Any,
    ) -> Any:
        _refuse_values_without_type(name, namespace)
        _refuse_fields_of_others(name, bases, namespace)
        if not omit_empty:
            _hold_defaults(namespace)
        if sensitive:
            namespace |= {"__repr__": masked_repr, "__rich_repr__": masked_rich_repr}
        wire: dict[str, Any] = {"kw_only": True, "rename": "camel", "omit_defaults": True, "repr_omit_defaults": True}
        # A model is a tree, as JSON is: there are no cycles in it that a collector could find, but in a mixin's own dict.
        wire["gc"] = any(base.__dictoffset__ for base in bases)
        try:
            cls: ModelType = super().__new__(mcls, name, bases, namespace, **(wire | config))
        except ValueError:
            _refuse_equal_wire_names(name, bases, namespace)
            raise
        cls.__rules__ = (*getattr(cls, "__rules__", ()), *checked_tuple("rules", rules, Rule, name))
        cls.__one_of__ = (*getattr(cls, "__one_of__", ()), *checked_tuple("one_of", one_of, OneOf, name))
        cls.__sensitive__ = (*getattr(cls, "__sensitive__", ()), *checked_tuple("sensitive", sensitive, str, name))
        _refuse_unknown_fields(cls, sensitive)
        return cls

    if not TYPE_CHECKING:  # type checkers know the fields

        def __call__(cls, *positional: Any, **fields: Any) -> Any:  # noqa: N805 - of a metaclass
            try:
                return super().__call__(*positional, **fields)
            except TypeError as error:
                unknown = next((name for name in fields if name not in cls.__struct_fields__), None)
                if unknown is None:
                    raise
                raise TypeError(f"{error}{_suggestion(cls, unknown)}") from None


if TYPE_CHECKING:

    class Struct(metaclass=ModelType):
        """Corrects msgspec's signature for type checkers: the fields of a model are keyword arguments, not positional
        ones.
        """

else:
    Struct = msgspec.Struct

_M = TypeVar("_M")


def _suggestion(cls: Any, unknown: str) -> str:
    """Returns the field that a misspelt keyword means: by its wire name, or by similarity."""
    wire = dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
    known = wire.get(unknown) or next(iter(get_close_matches(unknown, cls.__struct_fields__, n=1)), None)
    return (
        f"; {cls.__name__} calls it {known}=" if known else f"; {cls.__name__} has {', '.join(cls.__struct_fields__)}"
    )


def checked_tuple(keyword: str, values: Any, expected: type[_M], where: str) -> tuple[_M, ...]:
    """Returns the markers as a tuple. Raises `DefinitionError` for `rules=Rule(...)`, which lacks a comma."""
    if not isinstance(values, tuple) or not all(isinstance(value, expected) for value in values):
        example = repr(values) if isinstance(values, str) and expected is str else f"{expected.__name__}(...)"
        raise DefinitionError(
            f"class {where}: expected {keyword}= to be a tuple of {expected.__name__}, got {values!r}; "
            f"write {keyword}=({example},)"
        )
    return values


def _refuse_unknown_fields(cls: Any, sensitive: tuple[str, ...]) -> None:
    for name in sensitive:
        if name not in cls.__struct_fields__:
            raise DefinitionError(
                f"class {cls.__name__}: expected sensitive= to name its fields, got {name!r}; "
                f"it has {', '.join(cls.__struct_fields__)}"
            )


def _refuse_values_without_type(where: str, namespace: dict[str, Any]) -> None:
    """Raises `DefinitionError` for `size = 1`, which declares no field."""
    annotated = namespace.get("__annotations__", {})
    for name, value in namespace.items():
        if name not in annotated and not name.startswith("_") and _is_plain(value):
            raise DefinitionError(
                f"class {where}: expected a type for {name}, got only the value {value!r}; "
                f"write `{name}: <type> = ...` for a field, `{name}: ClassVar[<type>] = ...` for a constant"
            )


def _refuse_fields_of_others(where: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
    """Raises `DefinitionError` for fields that a plain class or dataclass declares: only a model's fields are sent."""
    models = [base for base in bases if isinstance(base, msgspec.StructMeta)]
    for mixin in (base for base in bases if base not in models):
        for name, annotation in vars(mixin).get("__annotations__", {}).items():
            known = name in namespace.get("__annotations__", {}) or any(hasattr(model, name) for model in models)
            if not (known or name.startswith("_") or _is_class_variable(annotation)):
                raise DefinitionError(
                    f"class {where}: expected the field {name} in a Model, got it in {mixin.__name__}, which is none; "
                    f"write class {mixin.__name__}(Model)"
                )


def _is_plain(value: Any) -> bool:
    """Returns True for a value that is no method, property, nested class or type alias."""
    return not (callable(value) or hasattr(type(value), "__get__") or get_origin(value))


def _refuse_equal_wire_names(where: str, bases: tuple[Any, ...], namespace: dict[str, Any]) -> None:
    wires: dict[str, str] = {}
    for base in bases:
        wires |= zip(getattr(base, "__struct_fields__", ()), getattr(base, "__struct_encode_fields__", ()), strict=True)
    for name, annotation in namespace.get("__annotations__", {}).items():
        if not _is_class_variable(annotation):
            wires[name] = _wire_name(name, namespace)
    known: dict[str, str] = {}
    for name, wire in wires.items():
        if wire in known:
            raise DefinitionError(
                f"class {where}: expected a wire name for each field, got {wire!r} for both {known[wire]} and {name}; "
                f'rename one, or write `{name}: ... = field(name="...")`'
            ) from None
        known[wire] = name


def _wire_name(name: str, namespace: dict[str, Any]) -> str:
    value = namespace.get(name)
    given: str | None = value.name if isinstance(value, _Field) else None
    made: Any = msgspec.defstruct("_", [name], rename="camel")
    return given or str(made.__struct_encode_fields__[0])


def fields_of(model: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Returns the fields of a model or object class, with their wire names, types and defaults.

    Raises `DefinitionError` for an annotation with an undefined name.
    """
    try:
        return msgspec.structs.fields(model)
    except NameError as error:
        raise undefined(_place(model, str(error.name)), error) from None


def undefined(where: str, error: NameError) -> DefinitionError:
    """Returns the error for an annotation with an undefined name."""
    return DefinitionError(
        f"{where}: expected a type, got the name {error.name!r} that is not defined at module level; "
        f"import it outside TYPE_CHECKING, or define it in the module"
    )


def _place(model: Any, name: str) -> str:
    """Returns the class and the field whose annotation has the name; without the field where an alias hides it."""
    cls = get_origin(model) or model
    for owner in cls.__mro__:
        for known, annotation in vars(owner).get("__annotations__", {}).items():
            if re.search(rf"\b{name}\b", annotation if isinstance(annotation, str) else repr(annotation)):
                return f"class {owner.__name__}, field {known}"
    return f"class {cls.__name__}"


def required_fields(model: Any) -> list[str]:
    """Returns the fields without a default. Does not resolve their types, which may name classes defined later."""
    names, defaults = model.__struct_fields__, model.__struct_defaults__
    without = len(names) - len(defaults)
    return [
        *names[:without],
        *(name for name, value in zip(names[without:], defaults, strict=True) if value is msgspec.NODEFAULT),
    ]


def _hold_defaults(namespace: dict[str, Any]) -> None:
    for name, annotation in namespace.get("__annotations__", {}).items():
        if name in namespace and not _is_class_variable(annotation):
            namespace[name] = _held(namespace[name])


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.removeprefix("typing.").startswith("ClassVar")
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _held(given: Any) -> Any:
    """Returns `given` as a default that msgspec never omits, unless it is None (unset) or missing."""
    if not isinstance(given, _Field):
        return given if given is None else msgspec.field(default_factory=Default.of(given))
    if given.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=Default(given.default_factory), name=given.name)
    if given.default is None or given.default is msgspec.NODEFAULT:
        return given
    return msgspec.field(default_factory=Default.of(given.default), name=given.name)


class Model(Struct, metaclass=ModelType):
    """A part of a kind's schema: subclass it for every struct inside a spec or status.

    Class keywords: `rules` (CEL on the whole struct), `one_of` (groups of fields of which one may be set), `sensitive`
    (names of fields whose values `repr` hides).

    >>> class Storage(Model):
    ...     size_gib: int = 1
    ...     class_name: str | None = None
    >>> from navarch.api.codec import encode
    >>> encode(Storage())
    b'{"sizeGib":1}'
    """

    __rules__: ClassVar[tuple[Rule, ...]]
    __one_of__: ClassVar[tuple[OneOf, ...]]
    __sensitive__: ClassVar[tuple[str, ...]]

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            rules: tuple[Rule, ...] = (),
            one_of: tuple[OneOf, ...] = (),
            sensitive: tuple[str, ...] = (),
            omit_empty: bool = False,
        ) -> None: ...
