"""`KindShape`: the shape and the reset fields of one kind in one version, for managed fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.objects.fields.sets import LEAF, Tree, recursive_difference
from navarch.cluster.server.objects.fields.shapes import META, REFERENCE, FieldShape, FieldShapes
from navarch.cluster.server.objects.types import Catalog, FieldReset, ResourceType
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import published

_STATUS_OF_CUSTOM: Final = FieldReset({"f:metadata": LEAF, "f:spec": LEAF})
_CUSTOM_WITH_STATUS: Final = {"": FieldReset({"f:status": LEAF}), "status": _STATUS_OF_CUSTOM}
_CUSTOM: Final = {"status": _STATUS_OF_CUSTOM}
_TEXT: Final = {"type": "string"}
_ZEROS: Final = (0, "", False)
_TIMES: Final = frozenset({f"{META}.Time", f"{META}.MicroTime"})
_MOST_SHAPES: Final = 4096


class OwnershipReset(msgspec.Struct, frozen=True):
    """The fields that a manager cannot own. `dropped` are members of the object that need not be compared at all."""

    dropped: frozenset[str]
    excluded: Tree
    only: Tree | None = None

    def kept(self, tree: Tree) -> Tree:
        """Returns the fields of the set that can be owned."""
        if self.only is not None:
            tree = _matching(tree, self.only)
        return recursive_difference(tree, self.excluded) if self.excluded else tree


NO_RESET: Final = OwnershipReset(frozenset(), {})
"""Every field can be owned."""


def compiled_resets(declared: Mapping[str, FieldReset]) -> dict[str, OwnershipReset]:
    """Returns the resets of a kind by subresource; "" is the object itself."""
    return {subresource: _compiled_reset(reset) for subresource, reset in declared.items()}


def custom_resets(*, has_status: bool) -> dict[str, OwnershipReset]:
    """Returns the resets of a custom kind."""
    return compiled_resets(_CUSTOM_WITH_STATUS if has_status else _CUSTOM)


def _compiled_reset(reset: FieldReset) -> OwnershipReset:
    dropped = frozenset(element[2:] for element, node in reset.excluded.items() if not node)
    return OwnershipReset(dropped, dict(reset.excluded), None if reset.only is None else dict(reset.only))


def _matching(tree: Tree, pattern: Tree) -> Tree:
    """The members on the way of a pattern, and everything behind its ends; "*" stands for any element."""
    found: Tree = {}
    for element, node in tree.items():
        further: Any = pattern.get(element, pattern.get("*"))
        if element == "." or further is None:
            continue
        kept = _matching(node, further) if node and further else node
        if kept or not node:
            found[element] = {".": LEAF, **kept} if "." in node and further else kept
        elif "." in node:
            found[element] = LEAF
    return found


class ServedShapes(Protocol):
    """The shapes of one kind by apiVersion: a mapping, or what looks like one."""

    def get(self, api_version: str, /) -> KindShape | None:
        """The shape; None if that version is not served."""
        ...


class KindShape(msgspec.Struct, kw_only=True):
    """The shape of a kind's objects in one version.

    `versions` gives the shapes of the versions that are served, by apiVersion: what is owned in others is forgotten. If
    it is None, all versions of the group are taken to be like this one. `convert` gives an object in another version;
    without it, versions differ in nothing but their name.
    """

    group: str
    version: str
    kind: str
    root: FieldShape
    zero: Json = msgspec.field(default_factory=dict)
    """An object in which nothing is set, as the server sees it: some members are there nevertheless."""
    is_custom: bool = False
    versions: ServedShapes | None = None
    convert: Callable[[Json, str], Json] | None = None
    resets: Mapping[str, OwnershipReset] = msgspec.field(default_factory=dict)

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def in_version(self, api_version: str) -> KindShape | None:
        """The shape of another version; None if there is no such version."""
        if api_version == self.api_version:
            return self
        if self.versions is not None:
            return self.versions.get(api_version)
        return self if api_version.rpartition("/")[0] == self.group else None

    def reset(self, subresource: str) -> OwnershipReset:
        """The fields that a writer of the subresource ("" for the object itself) cannot own."""
        return self.resets.get(subresource, NO_RESET)


@cache
def _shapes() -> FieldShapes:
    return FieldShapes(published().schema)


def builtin_shape(group: str, version: str, kind: str, document: Mapping[str, Any]) -> KindShape:
    """The shape of a built-in kind from its OpenAPI schema; what it refers to is looked up in what is published."""
    root = _shapes().of(document)
    return KindShape(group=group, version=version, kind=kind, root=root, zero=_zero(document))


def custom_shape(
    group: str, version: str, kind: str, document: Mapping[str, Any], *, has_status: bool = True
) -> KindShape:
    """The shape of a custom kind from its structural schema. `has_status`: whether status is a subresource."""
    own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"$ref": f"{REFERENCE}{META}.ObjectMeta"}}
    properties = {**document.get("properties", {}), **own}
    root = FieldShapes(published().schema).of({**document, "type": "object", "properties": properties})
    return KindShape(
        group=group,
        version=version,
        kind=kind,
        root=root,
        zero={"metadata": {}},
        is_custom=True,
        resets=custom_resets(has_status=has_status),
    )


def _zero(schema: Mapping[str, Any]) -> Json:
    """The members that an object of this type has when nothing is set: what Go writes even if it is empty."""
    zero: Json = {}
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        default = member.get("default")
        if default == {} and isinstance(default, dict):
            zero[name] = _zero(_target(member))
        elif default is not None and default in _ZEROS:
            zero[name] = default
        elif default is None and (name in required or _reference(member) in _TIMES):
            zero[name] = None
    return zero


def _target(member: Mapping[str, Any]) -> Mapping[str, Any]:
    name = _reference(member)
    return published().schema(name) if name else member


def _reference(member: Mapping[str, Any]) -> str:
    reference: str = member.get("$ref") or member.get("allOf", [{}])[0].get("$ref") or ""
    return reference.removeprefix(REFERENCE)


_known: dict[int, tuple[Mapping[str, Any], KindShape]] = {}


class _Served:
    """The versions of a resource that a catalog has right now."""

    def __init__(self, catalog: Catalog, plural: str) -> None:
        self._catalog = catalog
        self._plural = plural

    def get(self, api_version: str, /) -> KindShape | None:
        group, _, version = api_version.rpartition("/")
        found = self._catalog.find(group, version, self._plural)
        return None if found is None else shape_of(found)


def shape_of(resource: ResourceType, catalog: Catalog | None = None) -> KindShape:
    """The shape of a resource's objects, compiled once for each schema document.

    With the catalog it knows which other versions are served; see `KindShape`.
    """
    document = resource.schema.document
    known = _known.get(id(document))
    if known is None or known[0] is not document:
        if len(_known) >= _MOST_SHAPES:
            _known.clear()
        known = _known[id(document)] = (document, _compiled(resource, document))
    return known[1] if catalog is None else replace(known[1], versions=_Served(catalog, resource.plural))


def _compiled(resource: ResourceType, document: Mapping[str, Any]) -> KindShape:
    names = (resource.group, resource.version, resource.kind)
    if resource.is_custom:
        return custom_shape(*names, document, has_status="status" in resource.subresources)
    return replace(
        builtin_shape(*names, document), zero=resource.schema.zero(), resets=compiled_resets(resource.reset_fields)
    )
