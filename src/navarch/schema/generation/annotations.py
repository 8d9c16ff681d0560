"""Annotations taken apart: the type itself, the markers around it, and whether it may be None."""

from __future__ import annotations

import types
import typing
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields, replace

from navarch.api.markers import Meta

__all__ = ["Annotation", "literal_values", "take_apart", "union_members"]

M = TypeVar("M")
_UNSET_TYPES = (types.NoneType, msgspec.UnsetType)
_META_FIELDS = [(entry.name, entry.default) for entry in fields(Meta)]


class Annotation(msgspec.Struct, frozen=True):
    """`core` is the type without None and without markers; a union of several types stays a union."""

    core: Any
    markers: tuple[Any, ...] = ()
    optional: bool = False

    def every(self, marker: type[M]) -> list[M]:
        """The markers of that type, the innermost first."""
        return [found for found in self.markers if isinstance(found, marker)]

    def has(self, marker: type[Any]) -> bool:
        """Whether there is a marker of that type."""
        return any(isinstance(found, marker) for found in self.markers)

    def meta(self) -> Meta:
        """All `Meta` markers as one; an outer one overrides what it sets."""
        merged = Meta()
        for meta in self.every(Meta):
            given = {name: getattr(meta, name) for name, unset in _META_FIELDS if getattr(meta, name) != unset}
            merged = replace(merged, **given)
        return merged


def take_apart(annotation: Any) -> Annotation:
    """`annotation` with `Annotated` and `| None` removed, in whichever order they were written.

    >>> take_apart(typing.Annotated[int, Meta(ge=0)] | None).core
    <class 'int'>
    """
    if typing.get_origin(annotation) is typing.Annotated:
        core, *markers = typing.get_args(annotation)
        inner = take_apart(core)
        return Annotation(inner.core, (*inner.markers, *markers), inner.optional)
    if isinstance(annotation, typing.NewType):
        return take_apart(annotation.__supertype__)
    if hasattr(annotation, "__value__"):  # type Port = Annotated[int, Meta(ge=1)], from Python 3.12 on
        return take_apart(annotation.__value__)
    members = union_members(annotation)
    some = [member for member in members if member not in _UNSET_TYPES]
    if len(some) == len(members):
        return Annotation(annotation)
    if len(some) == 1:
        return replace(take_apart(some[0]), optional=True)
    return Annotation(typing.Union[tuple(some)] if some else types.NoneType, (), optional=True)  # noqa: UP007 - built at run time


def union_members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union; any other type is its own only member."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return typing.get_args(annotation)
    return (annotation,)


def literal_values(annotation: Any) -> tuple[Any, ...] | None:
    """The values of a `Literal`, or of a union of some; None for any other type.

    >>> literal_values(typing.Literal["a"] | typing.Literal["b"])
    ('a', 'b')
    """
    members = union_members(annotation)
    if any(typing.get_origin(member) is not typing.Literal for member in members):
        return None
    return tuple(dict.fromkeys(value for member in members for value in typing.get_args(member)))
