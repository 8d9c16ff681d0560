"""OpenAPI: the schemas of everything that is served, in version 3 document by document, in version 2 as one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from navarch.cluster.server.objects.descriptions import described
from navarch.cluster.server.wire.request import ApiRequest, Json, Reply
from navarch.k8s.published import Published

CustomDocuments = Callable[[], dict[str, Json]]
"""The documents of the CRDs that are served now, by name: `apis/example.com/v1`. `custom` makes them, and gives the same
object again while a document has not changed: what is made from it is kept that long.
"""

_REFERENCE = "#/components/schemas/"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES = (_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
_TAGS = frozenset({"x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"})
_SCHEMA_KEYWORDS_ONLY_IN_V3 = frozenset({"nullable", "oneOf", "anyOf", "allOf", "not"})


class _Encoded(NamedTuple):
    """A document, unless it never changes, its text, and the digest of that."""

    document: Json
    body: bytes
    digest: str


class OpenApi:
    """What `/openapi/v3`, the documents below it and `/openapi/v2` say."""

    def __init__(self, published: Published, custom: CustomDocuments) -> None:
        self._published = published
        self._custom = custom
        self._builtin: dict[str, _Encoded] = {}
        self._encoded: dict[str, _Encoded] = {}

    def reply(self, request: ApiRequest) -> Reply | None:
        """The answer, if the path is one of OpenAPI's."""
        if request.path == "/openapi/v3":
            return Reply(200, msgspec.json.encode({"paths": dict(self._paths())}))
        if request.path.startswith("/openapi/v3/"):
            return self._document(request, request.path.removeprefix("/openapi/v3/"))
        if request.path == "/openapi/v2":
            return self._reply_in_version_2(request.headers.get("accept", ""))
        return None

    def _reply_in_version_2(self, accept: str) -> Reply:
        if any(clause.split(";")[0].strip() in _PROTOBUF_NAMES for clause in accept.split(",")):
            from navarch.cluster.server.pipeline.nonresource.openapi_protobuf import in_protobuf  # noqa: PLC0415 - for Go alone

            return Reply(200, in_protobuf(self._version_2()), content_type=_PROTOBUF)
        return Reply(200, msgspec.json.encode(self._version_2()))

    def _paths(self) -> Iterator[tuple[str, Json]]:
        custom = self._custom()
        for gone in self._encoded.keys() - custom.keys():
            del self._encoded[gone]
        for name in (*self._published.documents(), *custom):
            encoded = self._encoding(name, custom)
            yield name, {"serverRelativeURL": _address(name, encoded.digest if encoded else _digest(b""))}

    def _document(self, request: ApiRequest, name: str) -> Reply | None:
        """A document, which clients may keep for as long as its digest is the one that they asked for."""
        encoded = self._encoding(name, self._custom())
        if encoded is None:
            return None
        digest, asked = encoded.digest, request.parameter("hash")
        headers = {"ETag": f'"{digest}"', "Vary": "Accept"}
        if asked and asked != digest:
            return Reply(301, headers={**headers, "Location": _address(name, digest)})
        if asked:
            headers["Cache-Control"] = "public, immutable"
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Reply(304, headers=headers)
        return Reply(200, encoded.body, headers=headers)

    def _encoding(self, name: str, custom: dict[str, Json]) -> _Encoded | None:
        """A document is encoded once: it may be large, there may be many, and everybody may ask for them."""
        document = custom.get(name)
        if document is not None:
            known = self._encoded.get(name)
            if known is None or known.document is not document:
                known = self._encoded[name] = _encoded(document)
            return known
        if name not in self._builtin and name in self._published.documents():
            self._builtin[name] = _encoded(_with_words(self._published.document(name)))._replace(document={})
        return self._builtin.get(name)

    def _version_2(self) -> Json:
        """The schemas alone are what clients read of it; the paths are those of version 3."""
        definitions: Json = {}
        for name in self._published.schema_names():
            definitions[name] = _in_version_2(described(name, self._published.schema(name)))
        for document in self._custom().values():
            for name, schema in document.get("components", {}).get("schemas", {}).items():
                if name not in definitions:
                    definitions[name] = _in_version_2(_restricted(schema, is_root=True))
        version = self._published.version()
        info = {"title": "Kubernetes", "version": f"{version['major']}.{version['minor']}"}
        return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}


def _with_words(document: Json) -> Json:
    schemas = document["components"].get("schemas", {})
    schemas.update({name: described(name, schema) for name, schema in schemas.items()})
    return document


def _encoded(document: Json) -> _Encoded:
    body = msgspec.json.encode(document)
    return _Encoded(document, body, _digest(body))


def _digest(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _address(name: str, digest: str) -> str:
    return f"/openapi/v3/{name}?hash={digest}"


def _restricted(schema: Json, *, is_root: bool = False) -> Json:
    """A schema of a custom kind without what readers of version 2 do not understand: what may be null, or may have any
    fields, has no type and no parts.
    """
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if is_open and is_root:
        return {"type": "object", **{key: value for key, value in schema.items() if key in _TAGS}}
    made = {**schema}
    if is_open or schema.get("nullable") is True:
        made.pop("properties", None)
        made.pop("items", None)
    if schema.get("nullable") is True or (is_open and made.get("type") == "object"):
        made.pop("type", None)
    if made.get("type") == "array" and "items" not in made:
        del made["type"]
    return _with_restricted_parts(made)


def _with_restricted_parts(schema: Json) -> Json:
    properties = schema.get("properties") or {}
    made = {**schema}
    if properties:
        made["properties"] = {name: _restricted(each) for name, each in properties.items()}
        nullable = {name for name, each in properties.items() if each.get("nullable") is True}
        required = [name for name in schema.get("required") or () if name not in nullable]
        made.pop("required", None)
        made |= {"required": required} if required else {}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            made[name] = _restricted(schema[name])
    return made


def _in_version_2(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_version_2(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    single = schema.get("allOf")
    if isinstance(single, list) and len(single) == 1 and "$ref" in single[0]:
        schema = {**{key: value for key, value in schema.items() if key not in {"allOf", "default"}}, **single[0]}
    return {
        key: _keyword_in_version_2(key, value)
        for key, value in schema.items()
        if key not in _SCHEMA_KEYWORDS_ONLY_IN_V3
    }


def _keyword_in_version_2(keyword: str, value: Any) -> Any:
    """Of properties only the schemas are looked into: they may be called `$ref` or `not`."""
    if keyword == "$ref":
        return value.replace(_REFERENCE, "#/definitions/")
    if keyword == "properties":
        return {name: _in_version_2(schema) for name, schema in value.items()}
    return _in_version_2(value)
