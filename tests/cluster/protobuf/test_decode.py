"""Protobuf bodies: read as Go reads them, and refused if they are none."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.cluster.server.wire.protobuf import MalformedError, opened
from navarch.cluster.server.wire.protobuf import enveloped as written
from navarch.cluster.server.wire.protobuf.messages import DEEPEST
from protobufs import MARK, enveloped, field, named, varint

Json = dict[str, Any]


@cache
def samples() -> list[tuple[bytes, Json]]:
    """Objects of all kinds as Go encodes them, and as JSON. `make judge NAME=protobuf-samples` asks Go again."""
    found = json.loads(gzip.decompress((Path(__file__).parent / "samples.json.gz").read_bytes()))
    return [(base64.b64decode(each["protobuf"]), each["json"]) for each in found]


def decode(body: bytes, api_version: str = "", kind: str = "") -> Json:
    """The object in a body; of that kind if it does not say of which it is."""
    envelope = opened(body)
    return envelope.read(envelope.api_version or api_version, envelope.kind or kind)


def test_every_sample_is_read_as_go_reads_it() -> None:
    """Objects of every built-in kind: empty, full, and filled at random."""
    for body, expected in samples():
        assert decode(body) == expected


def test_every_sample_is_written_so_that_it_is_read_again() -> None:
    """By this reader, which reads what Go writes; what is empty in Go may be left out."""
    for _, expected in samples():
        assert _filled(decode(written(expected))) == _filled(expected)


def _filled(value: Any) -> Any:
    """The value without what is nothing in protobuf."""
    if isinstance(value, dict):
        return {key: _filled(each) for key, each in value.items() if each not in (None, [], {})}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def test_samples_have_every_kind_and_every_field() -> None:
    """What is not in a sample would not be tested."""
    table = json.loads(
        (Path(__file__).parents[3] / "src/navarch/cluster/server/wire/protobuf/data/messages.json").read_text()
    )
    kinds = {(api_version, kind) for api_version, kinds in table["kinds"].items() for kind in kinds}
    assert {(found["apiVersion"], found["kind"]) for _, found in samples()} == kinds
    names = {text.split()[0] for fields in table["messages"].values() for text in fields.values()}
    choices = {"-", "schema", "jSONSchemas", "allows", "property"}
    assert names - choices <= {name for _, found in samples() for name in _names(found)}


def _names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_names, value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


def test_a_body_without_a_kind_is_of_the_expected_one() -> None:
    """Kubernetes takes the kind from the path then."""
    assert decode(MARK + field(2, named("a")), "v1", "ConfigMap") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


def test_options_of_a_deletion_are_known_in_every_group() -> None:
    """Go clients send them in the group of what they delete."""
    options = decode(enveloped(field(1, 5), "apps/v1", "DeleteOptions"))
    assert options == {"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5}


def test_unknown_fields_are_left_out() -> None:
    """A newer client may send more than this server knows."""
    more = field(99, b"x") + field(98, 1) + varint(97 << 3 | 1) + bytes(8) + varint(96 << 3 | 5) + bytes(4)
    assert decode(enveloped(named("a") + more))["metadata"] == {"name": "a"}


def test_text_that_is_not_utf_8_is_replaced() -> None:
    """As Go does when it writes JSON."""
    assert decode(enveloped(field(1, field(1, b"\xff"))))["metadata"] == {"name": "\ufffd"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data"),
        (MARK, "empty body"),
        (b'{"kind":"ConfigMap"}', "expected prefix [107 56 115 0]"),
        (MARK + b"\x0a\x7f", "unexpected EOF"),
        (enveloped(b"\x0a\x7f"), "unexpected EOF"),
        (enveloped(field(1, 7)), "proto: wrong wireType = 0 for field ObjectMeta"),
        (enveloped(field(1, field(1, 7))), "proto: wrong wireType = 0 for field Name"),
        (enveloped(b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (enveloped(b"\x00\x00"), "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (enveloped(b"\x80" * 10 + b"\x01"), "proto: integer overflow"),
        (enveloped(b"\x0f"), "proto: illegal wireType 7"),
        (enveloped(b"\x0a" + b"\xff" * 9 + b"\x01"), "proto: negative length found during unmarshaling"),
        (enveloped(b"", kind="Nothing"), 'no kind "Nothing" is registered for version "v1"'),
        (enveloped(b"", "example.com/v1", "Widget"), 'no kind "Widget" is registered for version "example.com/v1"'),
    ],
)
def test_what_is_no_protobuf_is_refused(body: bytes, why: str) -> None:
    """With the words of Kubernetes."""
    with pytest.raises(MalformedError, match=re.escape(why)):
        decode(body, "v1", "ConfigMap")


def test_json_inside_that_is_none_is_refused() -> None:
    """A ControllerRevision holds JSON."""
    with pytest.raises(MalformedError, match="RawExtension"):
        decode(enveloped(field(2, field(1, b"{")), "apps/v1", "ControllerRevision"))


def test_messages_that_lie_in_each_other_without_end_are_refused() -> None:
    """A schema may contain schemas; the stack is finite."""
    schema = b""
    for _ in range(DEEPEST * 20):
        schema = field(28, schema)  # not
    version = field(1, b"v1") + field(4, field(1, schema))
    with pytest.raises(MalformedError, match="exceeded max depth"):
        decode(enveloped(field(2, field(7, version)), "apiextensions.k8s.io/v1", "CustomResourceDefinition"))


@given(st.data())
def test_damaged_bodies_are_read_or_refused(data: st.DataObject) -> None:
    """Cut off, or with bytes changed: an object or that error, never another one."""
    body = bytearray(data.draw(st.sampled_from(samples()))[0])
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    _read_or_refused(bytes(body[: data.draw(st.integers(0, len(body)))]))


@given(st.binary(max_size=200), st.sampled_from(["Pod", "ConfigMap", "Secret", "Node"]))
def test_rubbish_is_read_or_refused(raw: bytes, kind: str) -> None:
    """Any bytes at all."""
    _read_or_refused(enveloped(raw, kind=kind))


def _read_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedError):
        json.dumps(decode(body, "v1", "Pod"), allow_nan=False)
