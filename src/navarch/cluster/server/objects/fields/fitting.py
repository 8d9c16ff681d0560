"""Checks that an applied object fits its shape, with Kubernetes' messages."""

from __future__ import annotations

from typing import Any

from navarch.cluster.server.objects.fields.elements import shown
from navarch.cluster.server.objects.fields.reading import UnfitError, by_element, item_element
from navarch.cluster.server.objects.fields.shapes import FieldShape, MergeForm
from navarch.cluster.server.wire.go_text import go_literal, go_text, go_type


def fits(value: Any, shape: FieldShape) -> bool:
    """Whether there is no fault; quicker than looking for all of them."""
    kind = type(value)
    if kind is dict and shape.map_form:
        return _map_fits(value, shape)
    if kind is list and shape.list_form:
        return _list_fits(value, shape)
    if kind is str and shape.scalar == "string":
        return True
    return value is None or not _misfit_of_scalar(value, shape)


def _map_fits(value: dict[str, Any], shape: FieldShape) -> bool:
    fields, others = shape.fields, shape.others
    for name, member in value.items():
        known = fields.get(name)
        below = known[1] if known is not None else others
        if below is None:
            return False
        if (type(member) is not str or below.scalar != "string") and not fits(member, below):
            return False
    return True


def _list_fits(value: list[Any], shape: FieldShape) -> bool:
    below = shape.items
    assert below is not None
    if not all(fits(item, below) for item in value):
        return False
    try:
        return not shape.by_item or len(by_element(value, shape)) == len(value)
    except UnfitError:
        return False


def misfits(value: Any, shape: FieldShape, *, duplicates: bool = False) -> list[tuple[str, str]]:
    """Every fault: the path and what is wrong there. `duplicates`: whether items may share their keys."""
    if isinstance(value, dict) and shape.map_form:
        return _misfits_of_map(value, shape, duplicates)
    if isinstance(value, list) and shape.list_form:
        return _misfits_of_list(value, shape, duplicates)
    if value is None:
        return []
    return _misfit_of_scalar(value, shape)


def said(faults: list[tuple[str, str]]) -> str:
    """All faults as one text."""
    texts = [f"{path}: {message}" if path else message for path, message in faults]
    return texts[0] if len(texts) == 1 else "\n".join(["errors:", *(f"  {text}" for text in texts)])


def _misfits_of_map(value: dict[str, Any], shape: FieldShape, duplicates: bool) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    for name, member in value.items():
        known = shape.fields.get(name)
        below = known[1] if known else shape.others
        if below is None:
            return [*faults, (f".{name}", "field not declared in schema")]
        faults += [(f".{name}{path}", message) for path, message in misfits(member, below, duplicates=duplicates)]
    return faults


def _misfits_of_list(value: list[Any], shape: FieldShape, duplicates: bool) -> list[tuple[str, str]]:
    assert shape.items is not None
    faults: list[tuple[str, str]] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if shape.list_form > MergeForm.ATOMIC:
            try:
                element = item_element(item, shape)
            except UnfitError as error:
                return [*faults, ("", f"element {index}: {error}")]
            if element in seen and not duplicates:
                faults.append(("", f"duplicate entries for key {shown(element)}"))
            seen.add(element)
        below = misfits(item, shape.items, duplicates=duplicates)
        faults += [(f"{shown(element)}{path}", message) for path, message in below]
    return faults


def _misfit_of_scalar(value: Any, shape: FieldShape) -> list[tuple[str, str]]:
    """A value that is no object or list where one is allowed, or of the wrong type."""
    if shape.map_form and not shape.scalar:
        return [("", f"expected map, got {_printed(value)}")]
    if shape.list_form and not shape.scalar:
        return [("", f"expected list, got {_printed(value)}")]
    if shape.scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return [("", f"expected numeric (int or float), got {go_type(value)}")]
    if shape.scalar == "string" and not isinstance(value, str):
        return [("", f"expected string, got {_detailed(value)}")]
    if shape.scalar == "boolean" and not isinstance(value, bool):
        return [("", f"expected boolean, got {_printed(value)}")]
    if shape.scalar == "untyped" and isinstance(value, dict | list):
        return [("", f"expected any scalar, got {_printed(value)}")]
    return []


def _printed(value: Any) -> str:
    """As Go's `%v` prints the holder of a value."""
    return f"&{{{go_text(value)}}}"


def _detailed(value: Any) -> str:
    """As Go's `%#v` prints the holder of a value."""
    return f"&value.valueUnstructured{{Value:{go_literal(value)}}}"
