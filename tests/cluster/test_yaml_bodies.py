"""Bodies of server-side apply."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.cluster.server.wire.bodies import applied_object
from navarch.cluster.server.wire.status_errors import StatusError

_NO_OBJECT = "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
_NO_YAML = "error decoding YAML: error converting YAML to JSON: "


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", True),
        ("a: off", False),
        ("a: y", True),
        ("a: 'y'", "y"),
        ("a: 2020-01-01", "2020-01-01"),
        ("a: 12:30", "12:30"),
        ("a: 0x10", 16),
        ("a: 0o17", 15),
        ("a: 017", 15),
        ("a: -1_000", -1000),
        ("a: 1e3", 1000),
        ("a: 1.5", 1.5),
        ("a: ~", None),
        ("a:", None),
        ("a: !foo b", "b"),
        ("a: !!binary aGk=", "hi"),
        ("a: |\n  text\n", "text\n"),
        ("a: 1\na: 2", 2),
        ("a: &x [1]\nb: *x", [1]),
        ("a: 1\n---\na: 2\n", 1),
        ('{"a": 1}', 1),
        ("{a: 1}}", 1),
    ],
)
def test_a_scalar_is_what_the_real_server_takes_it_for(text: str, value: Any) -> None:
    """Booleans of old YAML, octal numbers, no times; of several documents the first."""
    assert applied_object(text.encode())["a"] == value


def test_keys_are_texts() -> None:
    """As JSON has them."""
    assert applied_object(b"1: a\ntrue: b\ny: c\n1.5: d\n") == {"1": "a", "true": "c", "1.5": "d"}


@pytest.mark.parametrize("text", ["", " ", "# nothing", "---", "null"])
def test_an_empty_body_is_an_empty_object(text: str) -> None:
    """What it lacks is said later."""
    assert applied_object(text.encode()) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", f"{_NO_YAML}yaml: mapping values are not allowed in this context"),
        ("a:\n\tb: 1\n", f"{_NO_YAML}yaml: line 2: found character that cannot start any token"),
        ("a: b\nc: [", f"{_NO_YAML}yaml: line 2: did not find expected node content"),
        ("a: b\nc: {d: e", f"{_NO_YAML}yaml: line 2: did not find expected ',' or '}}'"),
        ("a: *y\n", f"{_NO_YAML}yaml: unknown anchor 'y' referenced"),
        ("@a", f"{_NO_YAML}yaml: found character that cannot start any token"),
        ("\x00", f"{_NO_YAML}yaml: control characters are not allowed"),
        ("'", f"{_NO_YAML}yaml: found unexpected end of stream"),
        ("[1]: x", f"{_NO_YAML}yaml: invalid map key: []interface {{}}{{1}}"),
        ("a: .inf", f"{_NO_YAML}json: unsupported value: +Inf"),
        ('{"a": "\\ud83d\\ude00"}', f"{_NO_YAML}yaml: found invalid Unicode character escape code"),
        ("a: &a [*a]", f"{_NO_YAML}yaml: anchor 'a' value contains itself"),
        ("[1]", f"{_NO_OBJECT}json: cannot unmarshal array into Go value of type map[string]interface {{}}"),
        ("x", f"{_NO_OBJECT}json: cannot unmarshal string into Go value of type map[string]interface {{}}"),
    ],
)
def test_a_body_that_is_no_object_is_refused_in_the_words_of_the_real_server(text: str, message: str) -> None:
    """400, with what is wrong and where."""
    with pytest.raises(StatusError) as caught:
        applied_object(text.encode())
    assert (caught.value.code, caught.value.message) == (400, message)


def test_aliases_do_not_make_a_small_body_large() -> None:
    """A few hundred bytes that stand for a billion values are refused at once."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(StatusError, match="excessive aliasing"):
        applied_object("\n".join(levels).encode())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 50_000 + "a",
        "{a: " * 5000 + "1" + "}" * 5000,
        '{"a":' * 100_000,
        '{"a":' * 50_000 + "1" + "}" * 50_000,
    ],
)
def test_depth_is_refused_and_no_crash(text: str) -> None:
    """However deep a body is nested."""
    with pytest.raises(StatusError):
        applied_object(text.encode())
