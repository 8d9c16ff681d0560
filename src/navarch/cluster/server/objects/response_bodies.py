"""Negotiates the form of an answer, and encodes objects in it: the object, a Table, PartialObjectMetadata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from navarch.cluster.server.objects.types import ResourceType, TableColumn
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

PROTOBUF = "application/vnd.kubernetes.protobuf"

_JSON = "application/json"
_YAML = "application/yaml"
_MEDIA_TYPES = (_JSON, _YAML)
_SUPPORTED = "application/json, application/yaml"
_MOST_CLAUSES = 256
"""Nobody accepts more; the rest of a longer header is not looked at."""
_KINDS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
_UNKNOWN = "<unknown>"
_INCLUDES = ("", "None", "Metadata", "Object")


class ResponseForm(msgspec.Struct, frozen=True):
    """`kind` is `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList` or empty for the object itself."""

    media_type: str = _JSON
    kind: str = ""
    version: str = ""


_PLAIN = ResponseForm()


def asked_form(accept: str, *, has_protobuf: bool = False, has_table: bool = True) -> ResponseForm:
    """The first form of the header that can be given; refuses with 406 if none can.

    Where a resource `has_protobuf`, whoever takes nothing else gets it: objects are stored as JSON, which costs less.
    The metadata alone is given in protobuf to all who ask for that first.
    What is never listed has no table.
    """
    if not accept or accept == _JSON:
        return _PLAIN
    clauses = accept.split(",", _MOST_CLAUSES)[:_MOST_CLAUSES]
    for clause in clauses:
        form = _form(clause, _MEDIA_TYPES) or _metadata_form(clause)
        if form is not None and (has_table or form.kind != "Table"):
            return form
    if has_protobuf:
        for clause in clauses:
            if (form := _form(clause, (PROTOBUF,))) is not None and form.kind != "Table":
                return form
    supported = f"{_SUPPORTED}, {PROTOBUF}" if has_protobuf else _SUPPORTED
    raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {supported}")


def _metadata_form(clause: str) -> ResponseForm | None:
    form = _form(clause, (PROTOBUF,))
    return form if form is not None and form.kind.startswith("Partial") else None


def _form(clause: str, media_types: tuple[str, ...]) -> ResponseForm | None:
    media_type, *parameters = (part.strip() for part in clause.split(";"))
    if media_type in {"*/*", "application/*"}:
        media_type = _JSON
    if media_type not in media_types:
        return None
    given = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    kind = given.get("as", "")
    if not kind:
        return ResponseForm(media_type)
    if kind not in _KINDS or given.get("g") != "meta.k8s.io" or given.get("v") not in {"v1", "v1beta1"}:
        return None
    return ResponseForm(media_type, kind, given["v"])


class TableRows(NamedTuple):
    """The columns of a table, what gives the cells of an object, and an annotation that rows do not show."""

    columns: Sequence[TableColumn]
    cells: Callable[[Json], list[Any]]
    hidden_annotation: str = ""


_log = logging.getLogger("navarch.cluster.server")


class _MetadataHead(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_metadata_in = msgspec.json.Decoder(_MetadataHead)


def written(value: Any, form: ResponseForm) -> bytes:
    """A value as JSON, YAML or protobuf."""
    if form.media_type == PROTOBUF:
        return _as_protobuf(value)
    if form.media_type != _YAML:
        return msgspec.json.encode(value) if not isinstance(value, bytes) else value
    import yaml  # noqa: PLC0415 - few ask for it

    plain = msgspec.json.decode(value) if isinstance(value, bytes) else value
    return yaml.dump(plain, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), default_flow_style=False).encode()


def _as_protobuf(value: Any) -> bytes:
    from navarch.cluster.server.wire.protobuf import enveloped  # noqa: PLC0415 - few ask for it

    return enveloped(msgspec.json.decode(value) if isinstance(value, bytes) else value)


def shaped(data: bytes, resource: ResourceType, form: ResponseForm, request: ApiRequest) -> bytes:
    """One object, given as JSON, in the form that was asked for."""
    if not form.kind:
        return written(data, form)
    if form.kind == "PartialObjectMetadata":
        return written(_partial_of(data, form.version, resource.hidden_annotation), form)
    value: Json = msgspec.json.decode(data)
    if form.kind == "Table":
        return written(_table(_rows(resource), [value], _of_one(value), request), form)
    if resource.is_custom:
        raise StatusError(500, "", "content is not a list")
    raise _not_acceptable(form, resource, "is not a list", resource.kind)


def shaped_part(value: Json, rows: TableRows, form: ResponseForm, request: ApiRequest) -> bytes:
    """The same for a part of an object that has a kind of its own."""
    if form.kind == "Table":
        return written(_table(rows, [value], _of_one(value), request), form)
    return written(_partial(value, form.version) if form.kind == "PartialObjectMetadata" else value, form)


def _rows(resource: ResourceType) -> TableRows:
    return TableRows(resource.columns, resource.strategy.cells, resource.hidden_annotation)


def _not_acceptable(form: ResponseForm, resource: ResourceType, is_what: str, kind: str) -> StatusError:
    """406 for the metadata of a list as that of an object, or the other way round; in the words of Go's types."""
    package = resource.group.partition(".")[0] or "core"
    types = "unstructured.Unstructured" if resource.is_custom else f"{package}.{resource.kind}"
    told = f"*{types}{'List' if kind.endswith('List') else ''}"
    return StatusError(406, "NotAcceptable", f"you requested {form.kind}, but the requested object {is_what} ({told})")


def list_reply(
    items: Sequence[bytes], metadata: Json, resource: ResourceType, form: ResponseForm, request: ApiRequest
) -> bytes:
    """A list of objects, given as JSON, in the form that was asked for."""
    if not form.kind:
        return written(_joined(items, metadata, resource), form)
    values: list[Json] = [msgspec.json.decode(item) for item in items]
    metadata = {name: value for name, value in metadata.items() if value}
    if form.kind == "Table":
        return written(_table(_rows(resource), values, metadata, request), form)
    if form.kind == "PartialObjectMetadata":
        raise _not_acceptable(form, resource, "is a list", f"{resource.kind}List")
    partial: Json = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata,
        "items": [_partial(value, form.version, resource.hidden_annotation) for value in values] or None,
    }
    return written(partial, form)


def _joined(items: Sequence[bytes], metadata: Json, resource: ResourceType) -> bytes:
    """Put together from the bytes of the objects: none is decoded."""
    kind = resource.list_kind or f"{resource.kind}List"
    head = msgspec.json.encode({"kind": kind, "apiVersion": resource.api_version, "metadata": metadata})
    if not resource.is_custom:
        items = [_without_kind(item, resource) for item in items]
    return b'%b,"items":[%b]}' % (head[:-1], b",".join(items))


def _without_kind(item: bytes, resource: ResourceType) -> bytes:
    """An object of a built-in kind in a list does not say what it is: the list does."""
    own = b'{"apiVersion":"%b","kind":"%b",' % (resource.api_version.encode(), resource.kind.encode())
    if item.startswith(own):
        return b"{" + item[len(own) :]
    value = msgspec.json.decode(item)
    return msgspec.json.encode({name: part for name, part in value.items() if name not in {"apiVersion", "kind"}})


def _partial_of(data: bytes, version: str, hidden: str) -> bytes:
    """The metadata as it stands in the bytes of the object: what is around it is only looked over."""
    if hidden and hidden.encode() in data:
        return msgspec.json.encode(_partial(msgspec.json.decode(data), version, hidden))
    head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":' % version.encode()
    return b"%b%b}" % (head, _metadata_in.decode(data).metadata)


def _partial(value: Json, version: str, hidden: str = "") -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": _shown(value["metadata"], hidden),
    }


def _shown(metadata: Json, hidden: str) -> Json:
    """Without the annotation that only whole objects have."""
    if not hidden or hidden not in (metadata.get("annotations") or ()):
        return metadata
    annotations = {name: text for name, text in metadata["annotations"].items() if name != hidden}
    rest = {name: part for name, part in metadata.items() if name != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _table(rows: TableRows, values: Iterable[Json], metadata: Json, request: ApiRequest) -> Json:
    include = request.parameter("includeObject")
    if include not in _INCLUDES:
        why = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: includeObject: {why}")
    columns, cells, hidden = rows
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(_cells(columns, cells, value), value, include, hidden) for value in values],
    }


def _cells(columns: Sequence[TableColumn], cells: Callable[[Json], list[Any]], value: Json) -> list[Any]:
    """The cells of an object; what cannot be shown is unknown, so that no object makes a table unreadable for others."""
    try:
        found = cells(value)
        msgspec.json.encode(found)
    except Exception as error:  # noqa: BLE001 - whatever an object has in it that nobody thought of
        name = value.get("metadata", {}).get("name", "")
        _log.warning("expected cells for %s %s in a table, got %r", value.get("kind"), name, error)
        return [name if column.name == "Name" else _UNKNOWN for column in columns]
    return found


def empty_table(resource: ResourceType, metadata: Json) -> Json:
    """What a bookmark is in a watch of tables: a row with nothing in it but its metadata."""
    known = {name: value for name, value in metadata.items() if value is not None}
    cells = [_UNKNOWN if column.name == "Age" else "" for column in resource.columns]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": known["resourceVersion"]},
        "columnDefinitions": [column.definition() for column in resource.columns],
        "rows": [{"cells": cells, "object": _partial({"metadata": known}, "v1")}],
    }


def _row(cells: list[Any], value: Json, include: str, hidden: str) -> Json:
    row: Json = {"cells": cells, "object": None}
    if include == "Object":
        row["object"] = value
    elif include != "None":
        row["object"] = _partial(value, "v1", hidden)
    return row


def _of_one(value: Json) -> Json:
    """The metadata of a table with one row."""
    return {name: value["metadata"][name] for name in ("resourceVersion",) if name in value["metadata"]}
