"""OpenAPI version 2 in protobuf, for clients in Go."""

from __future__ import annotations

from typing import Any

from navarch.cluster.server.pipeline.nonresource.openapi_protobuf import in_protobuf
from navarch.cluster.server.wire.protobuf.wire import parts

SCHEMA = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "format": "int32", "minimum": -1, "default": 3},
        "others": {"type": "array", "items": {"$ref": "#/definitions/io.example.Other"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
}


def inside(data: Any, *numbers: int) -> list[Any]:
    """What is at the end of a path of numbers."""
    first, *rest = numbers
    found = [content for number, _, content in parts(data, "") if number == first]
    return [each for content in found for each in inside(content, *rest)] if rest else found


def test_schemas_are_written_as_gnostic_reads_them() -> None:
    """Names, types, references and extensions are where the messages of OpenAPIv2.proto have them."""
    document = {"swagger": "2.0", "info": {"title": "t", "version": "v"}, "paths": {}, "definitions": {"W": SCHEMA}}
    written = in_protobuf(document)
    schema = inside(written, 9, 1, 2)[0]
    size, others, labels = inside(schema, 25, 1, 2)
    assert (inside(written, 1), inside(written, 2, 1), inside(written, 9, 1, 1)) == ([b"2.0"], [b"t"], [b"W"])
    assert (inside(schema, 22, 1), inside(schema, 19)) == ([b"object"], [b"size"])
    assert inside(schema, 25, 1, 1) == [b"size", b"others", b"labels"]
    assert (inside(size, 2), inside(size, 9), inside(size, 5, 2)) == ([b"int32"], [b"\0\0\0\0\0\0\xf0\xbf"], [b"3"])
    assert inside(others, 23, 1, 1) == [b"#/definitions/io.example.Other"]
    assert inside(labels, 21, 1, 22, 1) == [b"string"]
    assert inside(schema, 31, 1) == [b"x-kubernetes-group-version-kind"]
    assert inside(schema, 31, 2, 2) == [b'[{"group":"example.com","version":"v1","kind":"Widget"}]']
