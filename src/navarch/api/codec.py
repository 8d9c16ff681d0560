"""Encodes objects to JSON and decodes them.

Types that JSON lacks (quantities, durations, micro times) convert themselves through `from_wire` and `to_wire`.
Decoding is as lenient as Kubernetes: a null or missing required field gets its zero value, because a Go server means
that by it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from functools import cache
from threading import RLock
from typing import Any, Protocol, Self, TypeVar, cast, runtime_checkable

import msgspec

from navarch.api.model import undefined
from navarch.api.model_shape import ModelShape, shape_of
from navarch.errors import DecodeError, InvalidValueError, MalformedJsonError

T = TypeVar("T")


@runtime_checkable
class WireValue(Protocol):
    """A value that defines its own JSON form."""

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Returns the value of a JSON form. Raises `InvalidValueError`."""
        ...

    def to_wire(self) -> str | int:
        """Returns the JSON form."""
        ...


def _enc_hook(value: Any) -> Any:
    to_wire = getattr(value, "to_wire", None)  # isinstance with a Protocol would cost more than all the rest
    if to_wire is not None:
        return to_wire()
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise InvalidValueError(f"got {type(value).__name__}")


def _dec_hook(expected: type, value: Any) -> Any:
    try:
        return expected.from_wire(value)  # type: ignore[attr-defined]  # msgspec calls this for WireValue types only
    except InvalidValueError as error:
        raise ValueError(str(error)) from error


_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_UNFIT = (TypeError, UnicodeEncodeError, InvalidValueError)
_NOT_ALLOWED = re.compile(r"Invalid enum value (?P<value>.*) - at `(?P<path>\$.*)`", re.DOTALL)
_looking = RLock()
_encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
_orderly_encoder = msgspec.json.Encoder(enc_hook=_enc_hook, order="deterministic")


@cache
def _decoder(expected: Hashable) -> msgspec.json.Decoder[Any]:
    """Returns the decoder of a type, which is created once. The lock is needed: two threads that inspect the same
    classes at the same time crash msgspec.
    """
    try:
        with _looking:
            return msgspec.json.Decoder(expected, dec_hook=_dec_hook)
    except NameError as error:
        shape_of(expected)  # knows the class and the field, where those can be told
        raise undefined(_name(expected), error) from None


def encode(value: Any) -> bytes:
    """Returns `value` as JSON without unset fields.

    Raises `InvalidValueError` with the path of a value that JSON cannot hold.
    """
    return _encoded(value, _encoder)


def _encoded(value: Any, encoder: msgspec.json.Encoder) -> bytes:
    try:
        return encoder.encode(value)
    except RecursionError as error:
        raise InvalidValueError(f"expected a value that JSON can hold: {error}") from None
    except _UNFIT as error:
        raise InvalidValueError(f"expected a value that JSON can hold: {error} - at `{_unfit(value, '$')}`") from None


def _unfit(value: Any, path: str) -> str:
    """Returns the path of the value that cannot be encoded; called only once encoding has failed."""
    for step, inner in _inside(value):
        try:
            _encoder.encode(inner)
        except _UNFIT:
            return _unfit(inner, path + step)
    return path


def _inside(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct):
        fields = [
            (f".{wire}", getattr(value, name))
            for name, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        ]
        return [(step, inner) for step, inner in fields if inner is not msgspec.UNSET]
    if isinstance(value, dict):
        return [(f".{key}", inner) for key, inner in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", inner) for index, inner in enumerate(value)]
    return []


def decode(expected: type[T], data: bytes | msgspec.Raw) -> T:
    """Decodes `data` as `expected`. Raises `DecodeError` with the path of the field.

    >>> decode(dict, b'{"a": 1}')
    {'a': 1}
    """
    try:
        return _decoder(cast(Hashable, expected)).decode(data)  # type: ignore[no-any-return]  # typed by its argument
    except msgspec.ValidationError:
        return _decode_leniently(expected, data)
    except _MALFORMED as error:
        raise _malformed(expected, data, error) from None


def _decode_leniently(expected: type[T], data: bytes | msgspec.Raw) -> T:
    """Decodes again with Go's zero values in place of null and missing fields; an error that remains is raised.

    Goes through bytes: msgspec takes a model's raw fields from nothing else.
    """
    shape = shape_of(cast(Hashable, expected))
    try:
        filled = shape.with_zero_values(msgspec.json.decode(data))
    except _MALFORMED as error:  # behind the place of the first fault
        raise _malformed(expected, data, error) from None
    try:
        return _decoder(cast(Hashable, expected)).decode(encode(filled))  # type: ignore[no-any-return]  # as above
    except msgspec.ValidationError as error:
        raise DecodeError(f"expected {_name(expected)}{_identity(filled)}: {_fault(str(error), shape)}") from None


def _fault(text: str, shape: ModelShape) -> str:
    """Returns msgspec's message; for a value outside of an enum it adds the allowed values."""
    found = _NOT_ALLOWED.fullmatch(text)
    if found is None or not (choices := shape.at(found["path"]).choices):
        return text
    place, got = found["path"], found["value"]
    if place in {"$.apiVersion", "$.kind"}:
        bare = got.strip("'")
        return f"expected {place[2:]} {choices[0]}, got {bare}"
    allowed = ", ".join(map(repr, choices))
    return f"expected {'one of ' if len(choices) > 1 else ''}{allowed}, got {got} - at `{place}`"


def encode_orderly(value: Any) -> bytes:
    """Returns `value` as JSON like `encode`, with the names of all maps and the members of sets in order."""
    return _encoded(value, _orderly_encoder)


def to_builtins(value: Any) -> Any:
    """Returns `value` as the dicts, lists and scalars of its JSON form, with wire names.

    Sets and maps are sorted, as Go writes them, so equal values have equal results. Goes through JSON: msgspec's own
    function returns tuples and is not faster.

    >>> to_builtins({"zones": {"b", "a"}, "ports": (80, 443)})
    {'ports': [80, 443], 'zones': ['a', 'b']}
    """
    return msgspec.json.decode(encode_orderly(value))


def from_builtins(expected: type[T], value: Any) -> T:
    """Reverses `to_builtins`. Raises `msgspec.ValidationError`."""
    _decoder(cast(Hashable, expected))
    return msgspec.convert(value, expected, dec_hook=_dec_hook)


def _malformed(expected: Any, data: bytes | msgspec.Raw, fault: Exception) -> MalformedJsonError:
    """Returns the error, to be raised `from None`: the original error holds the text, which may be a secret."""
    return MalformedJsonError(f"expected JSON of {_name(expected)}, got {_glimpse(data)}: {fault}")


def _name(expected: Any) -> str:
    return getattr(expected, "__name__", str(expected))


def _identity(value: Any) -> str:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or "name" not in metadata:
        return ""
    return f" {metadata.get('namespace', '')}/{metadata['name']}".replace(" /", " ")


def _glimpse(data: bytes | msgspec.Raw) -> str:
    """Returns the size of the data and not its content: the body of a Secret must not reach a log."""
    size = len(bytes(data))
    return f"{size} bytes" if size else "nothing"
