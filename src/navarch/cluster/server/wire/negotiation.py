"""In which form an answer is asked for."""

from __future__ import annotations

import msgspec

from navarch.cluster.server.wire.status_errors import StatusError

PROTOBUF = "application/vnd.kubernetes.protobuf"

_JSON = "application/json"
_YAML = "application/yaml"
_MEDIA_TYPES = (_JSON, _YAML)
_SUPPORTED = "application/json, application/yaml"
_MOST_CLAUSES = 256
"""Nobody accepts more; the rest of a longer header is not looked at."""
_KINDS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


class Form(msgspec.Struct, frozen=True):
    """`kind` is `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList` or empty for the object itself."""

    media_type: str = _JSON
    kind: str = ""
    version: str = ""


_PLAIN = Form()


def asked_form(accept: str, *, has_protobuf: bool = False, has_table: bool = True) -> Form:
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


def _metadata_form(clause: str) -> Form | None:
    form = _form(clause, (PROTOBUF,))
    return form if form is not None and form.kind.startswith("Partial") else None


def _form(clause: str, media_types: tuple[str, ...]) -> Form | None:
    media_type, *parameters = (part.strip() for part in clause.split(";"))
    if media_type in {"*/*", "application/*"}:
        media_type = _JSON
    if media_type not in media_types:
        return None
    given = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    kind = given.get("as", "")
    if not kind:
        return Form(media_type)
    if kind not in _KINDS or given.get("g") != "meta.k8s.io" or given.get("v") not in {"v1", "v1beta1"}:
        return None
    return Form(media_type, kind, given["v"])
