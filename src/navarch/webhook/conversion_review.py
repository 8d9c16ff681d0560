"""Answers the API server's ConversionReviews: bytes in, bytes out.

A review holds whole lists, so each object is decoded, converted and encoded on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from navarch.api.json_patch import Json
from navarch.api.kind import Kind
from navarch.errors import ConversionError, DecodeError
from navarch.webhook.conversion import DeclaredConversion, Version, VersionGraph

_API_VERSION: Final = "apiextensions.k8s.io/v1"


class _ConversionRequest(msgspec.Struct, rename={"desired": "desiredAPIVersion"}):
    uid: str
    desired: str
    objects: list[msgspec.Raw]


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _ConversionRequest


class _ReviewedObject(msgspec.Struct, rename="camel"):
    """The fields of an object that decide whether it has to be converted."""

    api_version: str
    kind: str


_envelopes: Final = msgspec.json.Decoder(_Envelope)
_types: Final = msgspec.json.Decoder(_ReviewedObject)
_objects: Final = msgspec.json.Decoder(dict[str, Any])


class Conversions:
    """The conversions of all kinds of an operator."""

    def __init__(self, declared: Sequence[DeclaredConversion[Any, Any]], versions: Iterable[Version] = ()) -> None:
        """`versions` are the classes that the operator reconciles. Raises `DefinitionError` as `VersionGraph` does.

        A kind without any conversion is left out, whatever its versions are.
        """
        by_kind: dict[tuple[str, str], list[DeclaredConversion[Any, Any]]] = {}
        for pair in declared:
            by_kind.setdefault(_key(pair.old.__kind__), []).append(pair)
        others = tuple(versions)
        self.graphs = {
            key: VersionGraph(pairs, [cls for cls in others if _key(cls.__kind__) == key])
            for key, pairs in by_kind.items()
        }

    def __bool__(self) -> bool:
        return bool(self.graphs)

    def graph(self, kind: Kind) -> VersionGraph | None:
        """Returns the versions of a kind; None if nothing converts it."""
        return self.graphs.get(_key(kind))

    def answer(self, body: bytes) -> bytes:
        """Returns the response to a ConversionReview. A failed object fails the review, with the object and the cause.

        Raises `DecodeError` for a body that is no ConversionReview, which has no uid to answer to. Takes about 0.1 s for
        each MB; call it in a thread.
        """
        request = _decoded(body).request
        try:
            converted = [self._converted(each, request.desired) for each in request.objects]
        except (ConversionError, RecursionError) as error:
            return _response(request.uid, {"status": "Failure", "message": str(error)}, [])
        return _response(request.uid, {"status": "Success"}, converted)

    def convert(self, value: Json, api_version: str) -> Json:
        """Returns an object in another version. Raises `ConversionError` with the object and the cause."""
        group, _, version = api_version.rpartition("/")
        kind = str(value.get("kind"))
        graph = self.graphs.get((group, kind))
        if graph is None:
            known = ", ".join(f"{kind} ({group})" for group, kind in self.graphs) or "none"
            raise ConversionError(
                f"{kind} {_metadata(value).get('name')}: this replica of the operator does not convert {kind} ({group}), "
                f"only {known}; call the webhook of the operator that has this kind"
            )
        return graph.convert(value, version)

    def _converted(self, data: msgspec.Raw, api_version: str) -> msgspec.Raw:
        try:
            if _types.decode(data).api_version == api_version:
                return data
            value = _objects.decode(data)
        except msgspec.DecodeError as error:
            raise ConversionError(f"expected objects to convert, got something else: {error}") from None
        if not _metadata(value):
            raise ConversionError(f"{value['kind']}: expected an object with metadata to convert, got none")
        return msgspec.Raw(msgspec.json.encode(self.convert(value, api_version)))


def _key(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.kind


def _metadata(value: Json) -> Json:
    metadata = value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _decoded(body: bytes) -> _Envelope:
    try:
        review = _envelopes.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"expected a ConversionReview ({_API_VERSION}): {error}") from None
    if (review.api_version, review.kind) != (_API_VERSION, "ConversionReview"):
        raise DecodeError(
            f"expected a ConversionReview ({_API_VERSION}), got {review.kind} ({review.api_version}); write "
            f'conversionReviewVersions: ["v1"] in the CRD'
        )
    if not review.request.uid:
        raise DecodeError(f"expected a ConversionReview ({_API_VERSION}) with a uid, got an empty one")
    return review


def _response(uid: str, result: dict[str, str], objects: Sequence[msgspec.Raw]) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": _API_VERSION,
            "kind": "ConversionReview",
            "response": {"uid": uid, "result": result, "convertedObjects": objects},
        }
    )
