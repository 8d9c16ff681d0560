"""The target of a verb: a class, a kind without a class, or only the metadata of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from navarch.api import Dynamic, Kind, Object
from navarch.errors import InvalidValueError

T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=Object | Dynamic)

ALL = "*"
"""Stands for all namespaces in `list`, `watch` and `delete_all`."""


class Readable(Protocol[T_co]):
    """A class of objects, a `Kind` (its objects are `Dynamic`), or `MetadataOnly` of either."""

    def from_json(self, data: bytes) -> T_co:
        """Decodes an object. Raises `DecodeError`."""
        ...


class PartialObjectMetadata(Object, group="meta.k8s.io", version="v1", plural="", has_status=False):
    """An object without its spec and status: only the metadata was requested."""


@dataclass(frozen=True, slots=True)
class MetadataOnly:
    """Requests the metadata alone: `client.list(MetadataOnly(Secret))` never receives secret data."""

    of: type[Object] | Kind

    def from_json(self, data: bytes) -> PartialObjectMetadata:
        """Decodes the metadata; the result knows its kind."""
        found = PartialObjectMetadata.from_json(data)
        vars(found)["_of"] = kind_of(self)
        return found


def kind_of(what: Readable[Any]) -> Kind:
    """Returns the kind of a target. Refuses a class that declares none."""
    if isinstance(what, MetadataOnly):
        return kind_of(what.of)
    kind = what if isinstance(what, Kind) else getattr(what, "__kind__", None)
    if not isinstance(kind, Kind):
        raise InvalidValueError(
            f"expected a class that declares a kind, got {getattr(what, '__name__', what)!r}; "
            f'give it one: class Memcached(Resource[...], group="cache.example.com", version="v1")'
        )
    return kind


def required_object(target: object) -> Object | Dynamic:
    """Returns `target` if it is a whole object that can be written. Refuses common mistakes with a remedy."""
    if isinstance(target, PartialObjectMetadata):
        raise InvalidValueError("expected a whole object, got its metadata alone; patch it, or get it by its own class")
    if isinstance(target, (Object, Dynamic)):
        return target
    if isinstance(target, type):
        raise InvalidValueError(
            f"expected an object, got the class {target.__name__}; write {target.__name__}(name=...)"
        )
    remedy = "wrap it: Dynamic({...})" if isinstance(target, dict) else "give the object that it is a part of"
    raise InvalidValueError(f"expected an object, got {type(target).__name__}; {remedy}")


def reader_of(target: W, kind: Kind) -> Readable[W]:
    """Returns the decoder for an object like `target`: its class, or its kind if it has no class."""
    return cast(Readable[W], kind if isinstance(target, Dynamic) else type(target))


def accept(what: Readable[Any], *, many: bool = False) -> dict[str, str]:
    """Returns the Accept header for whole objects, or for their metadata alone."""
    if not isinstance(what, MetadataOnly):
        return {"Accept": "application/json"}
    form = "PartialObjectMetadataList" if many else "PartialObjectMetadata"
    return {"Accept": f"application/json;as={form};g=meta.k8s.io;v=v1"}
