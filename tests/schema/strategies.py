"""Good and bad values for a structural schema."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["FORMATS", "values"]

JsonSchema = dict[str, Any]

_TEXT = st.text(st.characters(codec="utf-8", categories=("Ll", "Lu", "Nd", "Pd", "So")), max_size=12)
_JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 200),
    st.sampled_from([2**31, 2**40, 2**63, -(2**63) - 1]),
    st.floats(-3, 3, width=16),
    st.sampled_from(["", "a", "A title", "red", "25%", "web", "2024-02-30", "x" * 45]),
    st.builds(list[Any]),
    st.builds(dict[str, Any]),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["name", "a"]), st.integers(0, 3), max_size=2),
)
_METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["a", "a/b", ".."]),
        "generateName": st.sampled_from(["a-", "a%"]),
        "labels": st.dictionaries(
            st.sampled_from(["a", "a b", "c.d/e"]), st.sampled_from(["", "x", "x y"]), max_size=2
        ),
        "finalizers": st.lists(st.sampled_from(["a.b/c", "a b"]), max_size=2),
        "colour": st.just("red"),
    },
)
_EMBEDDED = st.fixed_dictionaries(
    {"apiVersion": st.sampled_from(["v1", "a/b/c"]), "kind": st.sampled_from(["Pod", "a pod"])},
    optional={"metadata": _METADATA, "spec": st.fixed_dictionaries({}, optional={"x": st.integers(0, 3), "y": _JUNK})},
)
FORMATS: dict[str, st.SearchStrategy[str]] = {
    "byte": st.sampled_from(["aGk=", "", "aGk", "!", "YWJj"]),
    "date-time": st.sampled_from(
        [
            "2024-01-02T03:04:05Z",
            "2024-01-02t03:04:05.123+01:00",
            "2024-01-02",
            "2024-13-02T03:04:05Z",
            "2024-01-02T24:04:05Z",
            "2024-01-02 03:04:05Z",
        ]
    ),
    "date": st.sampled_from(["2024-02-29", "2023-02-29", "2024-2-9", "20240229", ""]),
    "uuid": st.sampled_from(["0" * 32, "A" * 8 + "-1234-1234-1234-" + "b" * 12, "0" * 31, "g" * 32]),
    "uri": st.sampled_from(
        ["http://a.b/c?d=e", "/a", "a", "mailto:x@y", "http://a b", "", "http://[::1", "x:%zz", "http://a^b", "/a b"]
    ),
    "email": st.sampled_from(["a@b.c", "A <a@b.c>", "a", "@b", "a b@c", "a@", "a:b@c", "<a@b", "ü@b"]),
    "hostname": st.sampled_from(["a", "a.bc", "a.b", "-a", "a-", "a_b", "1.2", "x" * 64, "☃.net"]),
    "ipv4": st.sampled_from(["1.2.3.4", "01.2.3.4", "1.2.3", "1.2.3.256", "::1", "::ffff:1.2.3.4"]),
    "ipv6": st.sampled_from(["::1", "1::2::3", "1.2.3.4", "fe80::1%eth0", "::ffff:1.2.3.4"]),
    "cidr": st.sampled_from(["10.0.0.0/8", "10.0.0.1/33", "::/0", "10.0.0.0", "10.0.0.0/08"]),
    "mac": st.sampled_from(["00:11:22:33:44:55", "0011.2233.4455", "00-11-22-33-44-55", "00:11", "001122334455"]),
    "duration": st.sampled_from(["1h", "1.5s", "22 ns", "1 day", "1 dog", "", "3 weeks", "-2m"]),
    "password": _TEXT,
    "hexcolor": st.sampled_from(["#fff", "fff", "#ffff", "#FFFFFF"]),
    "rgbcolor": st.sampled_from(["rgb(1,2,3)", "rgb(256,2,3)", "rgb( 1 , 2 , 3 )"]),
    "isbn": st.sampled_from(["0321751043", "978-0321751041", "0321751044"]),
    "creditcard": st.sampled_from(["4111-1111-1111-1111", "4111111111111112"]),
    "ssn": st.sampled_from(["111-11-1111", "111111111"]),
    "bsonobjectid": st.sampled_from(["0" * 24, "0" * 23]),
    "k8s-short-name": st.sampled_from(["a", "A", "a-b", "a.b", "x" * 64]),
    "k8s-long-name": st.sampled_from(["a.b", "A.b", "a..b", "x" * 254]),
}


def values(schema: JsonSchema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Mostly values of the schema's shape, some of them out of bounds, and now and then something else altogether."""
    fitting = _fitting(schema, depth)
    if schema.get("title") == "whole":
        return fitting
    return st.one_of(*[fitting] * 12, _JUNK) if depth > 1 else fitting


def _fitting(schema: JsonSchema, depth: int) -> st.SearchStrategy[Any]:
    if schema.get("nullable"):
        return st.one_of(st.none(), _fitting(schema | {"nullable": False}, depth))
    if schema.get("enum"):
        known = st.sampled_from(schema["enum"])
        return st.one_of(known, known, st.sampled_from([1.0, 2.5, "x"]))
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(st.integers(-1, 3), st.sampled_from(["25%", "a", "100Mi", "1.5"]))
    if schema.get("type") == "array":
        return st.lists(values(schema["items"], depth + 1), max_size=3)
    if schema.get("type") == "object":
        return _object(schema, depth)
    return _scalar(schema)


def _scalar(schema: JsonSchema) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "string":
            return FORMATS.get(schema.get("format", ""), _text(schema))
        case "integer" if schema.get("title") == "whole":
            return st.integers(-2, 12)
        case "integer":
            return st.one_of(st.integers(-2, 12), st.sampled_from([0, 1, 64, 65, 100, 101, 3.0, 2**31]))
        case "number":
            return st.one_of(st.integers(-1, 2), st.floats(-1, 2, width=16))
        case "boolean":
            return st.booleans()
    return _JUNK


def _text(schema: JsonSchema) -> st.SearchStrategy[str]:
    longest = schema.get("maxLength", 8)
    return st.one_of(_TEXT, st.sampled_from(["A", "Title", "nobody", "A" * longest, "A" * (longest + 1)]))


def _object(schema: JsonSchema, depth: int) -> st.SearchStrategy[Any]:
    values_schema = schema.get("additionalProperties")
    if isinstance(values_schema, dict):
        return st.dictionaries(st.sampled_from(["a", "b-c", "d.e"]), values(values_schema, depth + 1), max_size=3)
    if schema.get("x-kubernetes-embedded-resource"):
        return st.one_of(_EMBEDDED, _EMBEDDED, _JUNK)
    fields = {name: values(child, depth + 1) for name, child in schema.get("properties", {}).items()}
    needed = {name: fields[name] for name in schema.get("required", ()) if name in fields}
    rest = {name: strategy for name, strategy in fields.items() if name not in needed}
    shaped = st.fixed_dictionaries(needed, optional=rest)
    return st.one_of(*[shaped] * 9, st.fixed_dictionaries({}, optional=fields | {"unknown": _JUNK}))
