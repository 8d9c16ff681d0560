"""Converts objects between the versions of a kind, by functions that an operator declares.

A pair of functions connects two versions. The pairs of a kind form a tree that contains the stored version, so there is
exactly one way from each version to each other. One step of that way decodes the object as its class, calls the function
and encodes the result; `kept_fields` keeps what the result cannot hold. Everything is pure: JSON in, JSON out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import iscoroutine, iscoroutinefunction, isfunction, signature
from typing import Any, Final, Generic, TypeVar

import msgspec

from navarch.api.codec import decode, encode
from navarch.api.json_patch import Json
from navarch.api.kind import Kind
from navarch.api.model import fields_of
from navarch.api.model_shape import shape_of
from navarch.api.resource import Object, Resource
from navarch.errors import ConversionError, DecodeError, DefinitionError, NavarchError
from navarch.webhook.kept_fields import (
    ANNOTATIONS_LIMIT,
    KEPT_FIELDS,
    KeptField,
    annotation_of,
    is_same,
    lost_fields,
    read_annotation,
    restore,
    size_of,
)

Old = TypeVar("Old", bound=Resource[Any, Any])
New = TypeVar("New", bound=Resource[Any, Any])
Version = type[Resource[Any, Any]]
"""The class of one version of a kind."""

_CONVERTED_METADATA: Final = ("labels", "annotations")


# Declaring


class DeclaredConversion(Generic[Old, New]):
    """The functions that convert between two versions; what `@operator.convert(Old, New)` makes of a function.

    Calling it calls the function, so that it can be tested alone.
    """

    def __init__(self, old: type[Old], new: type[New], forward: Callable[[Old], New]) -> None:
        _refuse_other_kinds(old, new)
        _refuse_unfit_function(forward, old)
        self.old = old
        self.new = new
        self.forward = forward
        self.backward: Callable[[New], Old] | None = None

    def __call__(self, old: Old) -> New:
        """Converts once."""
        return self.forward(old)

    def __repr__(self) -> str:
        return f"<conversion {_name(self.forward)}: {self.old.__name__} to {self.new.__name__}>"

    def reverse(self, function: Callable[[New], Old]) -> Callable[[New], Old]:
        """Declares the function that converts back."""
        _refuse_unfit_function(function, self.new)
        if self.backward is not None:
            raise DefinitionError(
                f"{self!r}: expected one reverse function, got {_name(self.backward)} and {_name(function)}; remove one"
            )
        self.backward = function
        return function


def declare_conversion(
    declared: list[DeclaredConversion[Any, Any]], old: type[Old], new: type[New]
) -> Callable[[Callable[[Old], New]], DeclaredConversion[Old, New]]:
    """Returns the decorator that adds a conversion to those declared before.

    Raises `DefinitionError` for classes that are not two versions of one kind, a function that is a coroutine, and a second
    way between two versions.
    """
    _refuse_other_kinds(old, new)

    def declare(function: Callable[[Old], New]) -> DeclaredConversion[Old, New]:
        conversion = DeclaredConversion(old, new, function)
        _refuse_second_way(declared, conversion)
        declared.append(conversion)
        return conversion

    return declare


def _refuse_other_kinds(old: object, new: object) -> None:
    for given in (old, new):
        if isfunction(given):
            raise DefinitionError(
                f"expected two classes to convert between, got the function {given.__name__}; write "
                f"@operator.convert(OldMemcached, Memcached) above it, with your classes"
            )
        if not (isinstance(given, type) and issubclass(given, Resource) and hasattr(given, "__kind__")):
            raise DefinitionError(f"expected a class with group= and version= to convert, got {given!r}; declare one")
    assert isinstance(old, type) and issubclass(old, Object) and isinstance(new, type) and issubclass(new, Object)  # noqa: PT018 - narrows both
    one, other = old.__kind__, new.__kind__
    if (one.group, one.kind) != (other.group, other.kind):
        raise DefinitionError(
            f"expected two versions of one kind, got {one} and {other}; write group={one.group!r}, kind={one.kind!r} on "
            f"the class {new.__name__}, or convert another class"
        )
    if one.version == other.version:
        raise DefinitionError(
            f"{one}: expected two versions, got {one.version} twice ({old.__name__} and {new.__name__}); give one of the "
            f"classes another version="
        )


def _refuse_unfit_function(function: Callable[..., object], argument: type[Object]) -> None:
    name = _name(function)
    if iscoroutinefunction(function):
        raise DefinitionError(
            f"expected a plain function to convert {argument.__name__}, got the coroutine {name}; write def without "
            f"async: a conversion depends on the object alone"
        )
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # nothing tells what a built-in function takes
        return
    try:
        parameters.bind(object())
    except TypeError:
        raise DefinitionError(
            f"expected a function that takes a {argument.__name__}, got {name}{parameters}; write {name}(old)"
        ) from None


def _refuse_second_way(declared: Sequence[DeclaredConversion[Any, Any]], added: DeclaredConversion[Any, Any]) -> None:
    """Raises `DefinitionError` for a circle of pairs: kept fields fit only the way on which they were kept."""
    way = _Tree(declared).way(added.old, added.new)
    if way:
        through = " and ".join(map(repr, way))
        raise DefinitionError(
            f"{added!r}: expected one way between {added.old.__name__} and {added.new.__name__}, but there is {through} "
            f"already; remove one of them"
        )


def _name(function: object) -> str:
    return str(getattr(function, "__name__", repr(function)))


class _Tree:
    """The declared pairs of a kind, to find the way from one version to another."""

    def __init__(self, declared: Iterable[DeclaredConversion[Any, Any]]) -> None:
        self.neighbours: dict[Version, list[tuple[Version, DeclaredConversion[Any, Any]]]] = {}
        for pair in declared:
            self.neighbours.setdefault(pair.old, []).append((pair.new, pair))
            self.neighbours.setdefault(pair.new, []).append((pair.old, pair))

    def way(self, source: Version, target: Version) -> list[DeclaredConversion[Any, Any]] | None:
        """Returns the pairs from one version to another; None if they are not connected."""
        return self._way(source, target, set())

    def _way(self, source: Version, target: Version, seen: set[Version]) -> list[DeclaredConversion[Any, Any]] | None:
        if source is target:
            return []
        for neighbour, pair in self.neighbours.get(source, ()):
            if neighbour not in seen:
                rest = self._way(neighbour, target, seen | {source})
                if rest is not None:
                    return [pair, *rest]
        return None


# Converting


class VersionGraph:
    """The versions of one kind, and the conversion of an object from each to each other."""

    def __init__(self, declared: Sequence[DeclaredConversion[Any, Any]], versions: Iterable[Version] = ()) -> None:
        """Raises `DefinitionError` for a missing reverse function, a version that no conversion reaches, two classes of one
        version, and none or several stored versions.

        `versions` are further classes of the kind: those that the operator reconciles.
        """
        classes = dict.fromkeys([cls for pair in declared for cls in (pair.old, pair.new)] + list(versions))
        self.kind: Kind = next(iter(classes)).__kind__
        self.classes: dict[str, Version] = {}
        for cls in classes:
            known = self.classes.setdefault(cls.__kind__.version, cls)
            if known is not cls:
                raise DefinitionError(
                    f"{cls.__kind__}: expected one class of version {cls.__kind__.version}, got {known.__name__} and "
                    f"{cls.__name__}; use one of them everywhere"
                )
        self.hub = self._stored()
        _refuse_missing_reverse(declared)
        tree = _Tree(declared)
        self._refuse_unconnected(tree)
        self._ways = {
            (source.__kind__.version, target.__kind__.version): _steps(tree, source, target)
            for source in classes
            for target in classes
        }

    @property
    def versions(self) -> tuple[Version, ...]:
        """The classes, for `schema.crd`."""
        return tuple(self.classes.values())

    def convert(self, value: Json, version: str) -> Json:
        """Returns an object in another version; an object that has this version already is returned as it is.

        The result may share parts with `value`. Raises `ConversionError` with the object and the cause.
        """
        group, _, source = str(value.get("apiVersion")).rpartition("/")
        for known in (source, version):
            if known not in self.classes or group != self.kind.group:
                raise ConversionError(
                    f"{_named(value)}: this replica of the operator does not know {group}/{known}, only "
                    f"{', '.join(self.classes)} of {self.kind.group}; in a rolling update, a newer replica converts it: "
                    f"try again until all replicas are updated"
                )
        for step in self._ways[source, version]:
            value = step.convert(value)
        return value

    def _stored(self) -> Version:
        stored = [cls for cls in self.classes.values() if cls.__declaration__.storage]
        if len(stored) != 1:
            names = ", ".join(cls.__name__ for cls in stored) or "none"
            raise DefinitionError(
                f"{self.kind.kind} ({self.kind.group}): expected exactly one stored version, got {names}; write "
                f"storage=False on all other classes"
            )
        return stored[0]

    def _refuse_unconnected(self, tree: _Tree) -> None:
        for cls in self.classes.values():
            if tree.way(cls, self.hub) is None:
                raise DefinitionError(
                    f"{self.kind.kind} ({self.kind.group}): expected conversions between all versions, got none between "
                    f"{cls.__kind__.version} and the stored version {self.hub.__kind__.version}; write "
                    f"@operator.convert({cls.__name__}, {self.hub.__name__}) and its .reverse"
                )


def _steps(tree: _Tree, source: Version, target: Version) -> list[ConversionStep]:
    steps = []
    for pair in tree.way(source, target) or ():
        is_forward = pair.old is source
        steps.append(ConversionStep.of(pair, is_forward=is_forward))
        source = pair.new if is_forward else pair.old
    return steps


def _refuse_missing_reverse(declared: Sequence[DeclaredConversion[Any, Any]]) -> None:
    for pair in declared:
        if pair.backward is None:
            raise DefinitionError(
                f"{pair!r}: expected a function for the way back, got none; write @{_name(pair.forward)}.reverse above a "
                f"function that takes a {pair.new.__name__} and returns a {pair.old.__name__}"
            )


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """One function with its reverse, applied to JSON."""

    source: Version
    target: Version
    function: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    defaults: dict[str, Json]
    """The parts of a new object of the target, by wire name: its default status, and its default spec if it has one."""

    @classmethod
    def of(cls, pair: DeclaredConversion[Any, Any], *, is_forward: bool) -> ConversionStep:
        """Returns one direction of a pair that has both."""
        assert pair.backward is not None
        if is_forward:
            return cls(pair.old, pair.new, pair.forward, pair.backward, _default_parts(pair.new))
        return cls(pair.new, pair.old, pair.backward, pair.forward, _default_parts(pair.old))

    def convert(self, value: Json) -> Json:
        """Returns the object in the target version, with the fields that it cannot hold in the annotation."""
        kept = read_annotation(value["metadata"].get("annotations"))
        original = _visible(value)
        decoded = self._decoded(self.source, original)
        converted = self._called(self.function, decoded, self.target, original)
        for name, default in self.defaults.items():  # a new object has no status, in no version
            if name not in original and name in converted and is_same(converted[name], default):
                del converted[name]
        restored = self._restored(converted, kept.pop(self.target.__kind__.version, ()))
        returned = self._called(self.inverse, self._decoded(self.target, restored), self.source, restored)
        if not is_same(_comparable(original), _comparable(returned)):
            filled = msgspec.json.decode(encode(self._decoded(self.source, original)))
            lost = lost_fields(_comparable(original), _comparable(returned), _comparable(filled), shape_of(self.source))
            if lost:
                kept[self.source.__kind__.version] = tuple(lost)
        if kept:
            restored["metadata"].setdefault("annotations", {})[KEPT_FIELDS] = annotation_of(kept)
            self._refuse_too_large(restored)
        if "managedFields" in value["metadata"]:
            restored["metadata"]["managedFields"] = value["metadata"]["managedFields"]
        return restored

    def _decoded(self, cls: Version, value: Json) -> Any:
        try:
            return decode(cls, encode(value))
        except DecodeError as error:
            raise ConversionError(f"{self._conversion(value)}: {error}") from error

    def _called(self, function: Callable[[Any], Any], given: Any, expected: Version, value: Json) -> Json:
        """Returns the function's result as JSON, with the metadata of the object that it was given."""
        before = encode(given.metadata)
        try:
            result = function(given)
        except Exception as error:
            raise ConversionError(
                f"{self._conversion(value)}: {_name(function)} raised {type(error).__name__}: {error}"
            ) from error
        if iscoroutine(result):
            result.close()
        if not isinstance(result, expected):
            raise ConversionError(
                f"{self._conversion(value)}: expected {_name(function)} to return a {expected.__name__}, got "
                f"{type(result).__name__}"
            )
        try:
            converted = msgspec.json.decode(encode(result))
        except NavarchError as error:
            raise ConversionError(f"{self._conversion(value)}: {_name(function)} returned {error}") from error
        self._refuse_other_metadata(function, converted["metadata"], msgspec.json.decode(before), value)
        metadata = {name: item for name, item in value["metadata"].items() if name not in _CONVERTED_METADATA}
        for name in _CONVERTED_METADATA:
            merged = getattr(given.metadata, name) | getattr(result.metadata, name)
            merged.pop(KEPT_FIELDS, None)
            if merged:
                metadata[name] = merged
        converted["metadata"] = metadata
        return converted

    def _refuse_other_metadata(
        self, function: Callable[[Any], Any], returned: Json, metadata: Json, value: Json
    ) -> None:
        for name, found in returned.items():
            if name not in _CONVERTED_METADATA and found != metadata.get(name):
                raise ConversionError(
                    f"{self._conversion(value)}: expected {_name(function)} to leave metadata.{name} as it is, got "
                    f"another one; only labels and annotations may be converted"
                )

    def _restored(self, converted: Json, kept: Sequence[KeptField]) -> Json:
        """Returns the object with its kept fields; without them if it would no longer decode, because they were edited or
        belong to an older schema.
        """
        allowed = [field for field in kept if _is_converted(field.path)]
        if not allowed:
            return converted
        found = msgspec.json.decode(encode(converted))
        restore(found, allowed)
        try:
            decode(self.target, encode(found))
        except DecodeError:
            return converted
        return found

    def _refuse_too_large(self, value: Json) -> None:
        size = size_of(value["metadata"]["annotations"])
        if size > ANNOTATIONS_LIMIT:
            raise ConversionError(
                f"{self._conversion(value)}: expected at most {ANNOTATIONS_LIMIT} bytes of annotations, got {size} with "
                f"the fields that {self.target.__kind__.version} cannot hold ({KEPT_FIELDS}); give {self.target.__name__} "
                f"a field for them, or read the object as {self.source.__kind__.version}"
            )

    def _conversion(self, value: Json) -> str:
        return f"{_named(value)}: cannot convert {self.source.__kind__.version} to {self.target.__kind__.version}"


def _visible(value: Json) -> Json:
    """Returns the object as functions see it: without managedFields and kept fields."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    annotations = metadata.get("annotations")
    if annotations and KEPT_FIELDS in annotations:
        metadata["annotations"] = {name: item for name, item in annotations.items() if name != KEPT_FIELDS}
    return {**value, "metadata": metadata}


def _is_converted(path: Sequence[object]) -> bool:
    """Returns whether a path leads to what functions convert; somebody may have edited the annotation."""
    if path[:1] == ("metadata",):
        return len(path) > 1 and path[1] in _CONVERTED_METADATA and path[2:3] != (KEPT_FIELDS,)
    return len(path) > 0 and path[0] not in {"apiVersion", "kind"}


def _comparable(value: Json) -> Json:
    """Returns what functions convert: not the type, and of the metadata only labels and annotations."""
    metadata = {name: value["metadata"][name] for name in _CONVERTED_METADATA if value["metadata"].get(name)}
    body = {name: item for name, item in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    return {**body, "metadata": metadata}


def _default_parts(cls: Version) -> dict[str, Json]:
    return {
        info.encode_name: msgspec.json.decode(encode(info.default_factory()))
        for info in fields_of(cls)
        if info.name not in {"api_version", "kind", "metadata"} and info.default_factory is not msgspec.NODEFAULT
    }


def _named(value: Json) -> str:
    metadata = value.get("metadata") or {}
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{value.get('kind')} {place}{metadata.get('name')}"
