"""Strategic merge patches: lists are merged by the keys that the schema names, and a patch may carry directives.

`$patch` replaces or deletes an object or an item, `$retainKeys` says which members stay, `$setElementOrder/ports` in
which order items come, and `$deleteFromPrimitiveList/finalizers` which items go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from navarch.cluster.server.objects.fields import arranging
from navarch.cluster.server.objects.fields.arranging import StrategicError, identity
from navarch.cluster.server.objects.fields.shapes import REFERENCE
from navarch.cluster.server.wire.go_text import go_text, go_type
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import published

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"
_NOTHING: Final = object()


def strategic_merge(live: Json, patch: Json, schema: Mapping[str, Any]) -> Json:
    """The object after the patch; neither argument is changed, but parts of both are shared. Raises StrategicError."""
    return _merge_maps(live, patch, _PatchType(schema, "Object"))


class _PatchType:
    """A schema, and the name of the type that messages call it."""

    def __init__(self, schema: Mapping[str, Any], name: str) -> None:
        self.schema = schema
        self.name = name

    def member(self, name: str) -> tuple[str, str, _PatchType]:
        """The strategy and the merge key of a member, and its type; raises StrategicError if there is none."""
        properties = self.schema.get("properties")
        if properties is None:
            raise StrategicError(f"merging an object in json but data type is not struct, instead is: {self._kind()}")
        member = properties.get(name)
        if member is None:
            raise StrategicError(f'unable to find api field in struct {self.name} for the json field "{name}"')
        strategies = member.get("x-kubernetes-patch-strategy", "").split(",")
        strategy = next((each for each in strategies if each and each != "retainKeys"), "")
        return strategy, member.get("x-kubernetes-patch-merge-key", ""), _resolved(member)

    def items(self) -> _PatchType:
        """The type of the items of a list."""
        if self.schema.get("type") != "array":
            raise StrategicError("expected slice or array type, but got: struct")
        return _resolved(self.schema.get("items", {}))

    def _kind(self) -> str:
        kinds = {"object": "map", "array": "slice", "string": "string"}
        return kinds.get(self.schema.get("type", ""), "interface")


def _resolved(schema: Mapping[str, Any]) -> _PatchType:
    reference = schema.get("$ref") or schema.get("allOf", [{}])[0].get("$ref")
    if not reference:
        return _PatchType(schema, "")
    name = reference.removeprefix(REFERENCE)
    return _PatchType(published().schema(name), name.rpartition(".")[2])


def _merge_maps(original: Json, patch: Json, kind: _PatchType) -> Json:
    if _DIRECTIVE in patch:
        return _directed(patch)
    original, patch = dict(original), dict(patch)
    _retain(original, patch)
    _merge_ordered_lists(original, patch, kind)
    for name, value in patch.items():
        _merge_member(original, name, value, kind)
    return original


def _directed(patch: Json) -> Json:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown(directive, patch)


def _unknown(directive: Any, patch: Json) -> StrategicError:
    return StrategicError(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def _retain(original: Json, patch: Json) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list) or not all(isinstance(name, str) for name in retained):
        raise StrategicError("invalid patch format of retainKeys", code=400)
    names = frozenset(retained)
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in names:
            raise StrategicError("invalid patch format of retainKeys", code=400)
    for name in original.keys() - names:
        del original[name]


def _merge_ordered_lists(original: Json, patch: Json, kind: _PatchType) -> None:
    """Merges the lists whose order the patch gives, and takes them out of it."""
    for directive in [name for name in patch if name.startswith(_ORDER)]:
        wanted_order = _as_list(patch.pop(directive))
        name = _suffix(directive, _ORDER, "invalid patch format of setElementOrder list")
        before = _as_list(original[name]) if name in original else None
        wanted = _as_list(patch[name]) if name in patch else None
        strategy, key, member = kind.member(name)
        items = member.items()
        if wanted:
            arranging.check_order(wanted, wanted_order, key)
        if before is None and wanted is None:
            continue
        merged = _with_order_kept(before, wanted, items, strategy, key)
        arranging.element_type(before or [], wanted or [])
        original[name] = arranging.arranged(merged, wanted_order, before or [], key)
        patch.pop(name, None)


def _with_order_kept(
    before: list[Any] | None, wanted: list[Any] | None, items: _PatchType, strategy: str, key: str
) -> list[Any]:
    if wanted is None:
        return before or []
    if before is None:
        return [item for item in map(_without_directives, wanted) if item is not _NOTHING]
    return _merge_lists(before, wanted, items, strategy, key, deletes=False)


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise StrategicError(f"expected a []interface {{}}, but received a {go_type(value)}")
    return value


def _suffix(directive: str, prefix: str, complaint: str) -> str:
    start, separator, name = directive.partition("/")
    if start != prefix or not separator:
        raise StrategicError(complaint, code=400)
    return name


def _merge_member(original: Json, name: str, value: Any, kind: _PatchType) -> None:
    deletes = name.startswith(_DELETE)
    if deletes:
        name = _suffix(name, _DELETE, "invalid patch format of primitive list")
    if value is None:
        original.pop(name, None)
        return
    if not deletes and type(value) is not dict and type(value) is not list:
        original[name] = value
        return
    before = original.get(name)
    if isinstance(before, dict) and isinstance(value, dict):
        strategy, _, member = kind.member(name)
        original[name] = value if strategy == "replace" else _merge_maps(before, value, member)
    elif isinstance(before, list) and isinstance(value, list):
        strategy, key, member = kind.member(name)
        original[name] = _merge_lists(before, value, member.items(), strategy, key, deletes=deletes)
    elif not deletes:
        _replace(original, name, value)


def _replace(original: Json, name: str, value: Any) -> None:
    kept = _without_directives(_without_nulls(value) if type(original.get(name)) is not type(value) else value)
    if kept is _NOTHING:
        original.pop(name, None)
    else:
        original[name] = kept


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _NOTHING
        kept = {name: _without_directives(member) for name, member in value.items()}
        return {name: member for name, member in kept.items() if member is not _NOTHING}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _NOTHING]
    return value


def _merge_lists(
    original: list[Any], patch: list[Any], items: _PatchType, strategy: str, key: str, *, deletes: bool
) -> list[Any]:
    if strategy != "merge" and not deletes:
        return patch
    if not original and not patch:
        return original
    if arranging.element_type(original, patch) is not dict:
        if deletes:
            gone = frozenset(map(identity, patch))
            return [item for item in original if identity(item) not in gone]
        return arranging.arranged(arranging.deduplicated([*original, *patch]), patch, original, "")
    if not key:
        raise StrategicError(f"cannot merge lists without merge key for {items.name}")
    original, patch = _specials(original, patch, key)
    merged = _merge_items(list(original), patch, items, key)
    return arranging.arranged(merged, patch, original, key)


def _specials(original: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Both lists after the items that are directives."""
    plain = [item for item in patch if _DIRECTIVE not in item]
    replaces, gone = False, set()
    for item in patch:
        directive = item.get(_DIRECTIVE, _NOTHING)
        if directive == "delete":
            gone.add(identity(arranging.key_of(item, key)))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        elif directive is not _NOTHING:
            raise _unknown(directive, item)
    left = [each for each in original if key not in each or identity(each[key]) not in gone] if gone else original
    return (plain, []) if replaces else (left, plain)


def _merge_items(original: list[Json], patch: list[Json], items: _PatchType, key: str) -> list[Json]:
    places: dict[Hashable, int] = {}
    for at, item in enumerate(original):
        if key in item:
            places.setdefault(identity(item[key]), at)
    for item in patch:
        wanted = identity(arranging.key_of(item, key))
        if wanted in places:
            original[places[wanted]] = _merge_maps(original[places[wanted]], item, items)
        else:
            places[wanted] = len(original)
            original.append(item)
    return original
