"""Laws that hold for all values, not only for those somebody thought of."""

from __future__ import annotations

import contextlib
import math
import operator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from navarch.schema import cel
from navarch.schema.cel.lexer import escape
from navarch.schema.cel.library.conversions import format_double, parse_double
from navarch.schema.cel.library.times import format_duration, format_timestamp, parse_duration, parse_timestamp
from navarch.schema.cel.parser import parse

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul}
PROGRAMS = {
    (symbol, kind): cel.compile(f"a {symbol} b", {"a": kind, "b": kind})
    for symbol in BINARY
    for kind in (cel.INT, cel.UINT)
}
DIVIDE = cel.compile("[a / b, a % b]", {"a": cel.INT, "b": cel.INT})
SAME = cel.compile("a == b", {"a": cel.DYN, "b": cel.DYN})

values = st.recursive(
    st.none() | st.booleans() | INT64 | UINT64.map(cel.Uint) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(BINARY)), INT64, INT64)
def test_int_arithmetic_is_exact_or_overflows(symbol: str, a: Any, b: Any) -> None:
    """As Python's, where the result fits 64 bits."""
    program, exact = PROGRAMS[symbol, cel.INT], BINARY[symbol](a, b)
    if -(2**63) <= exact < 2**63:
        assert program.evaluate({"a": a, "b": b}) == exact
    else:
        with pytest.raises(cel.CelEvaluationError, match="overflow"):
            program.evaluate({"a": a, "b": b})


@given(st.sampled_from(sorted(BINARY)), UINT64, UINT64)
def test_uint_arithmetic_is_exact_or_overflows(symbol: str, a: Any, b: Any) -> None:
    """A negative result does not wrap around."""
    program, exact = PROGRAMS[symbol, cel.UINT], BINARY[symbol](a, b)
    variables = {"a": cel.Uint(a), "b": cel.Uint(b)}
    if 0 <= exact < 2**64:
        assert program.evaluate(variables) == exact
    else:
        with pytest.raises(cel.CelEvaluationError, match="overflow"):
            program.evaluate(variables)


@given(INT64, INT64.filter(bool))
def test_quotient_and_remainder_make_the_dividend(a: Any, b: Any) -> None:
    """The quotient is cut towards zero, the remainder has the sign of the dividend."""
    if (a, b) == (-(2**63), -1):
        return
    both: Any = DIVIDE.evaluate({"a": a, "b": b})
    quotient, remainder = both
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@given(values, values)
def test_equality_is_symmetric(a: Any, b: Any) -> None:
    """And every value is equal to itself."""
    assert SAME.evaluate({"a": a, "b": b}) == SAME.evaluate({"a": b, "b": a})
    assert SAME.evaluate({"a": a, "b": a}) is True


@given(st.floats(allow_nan=False))
def test_double_survives_its_text(number: float) -> None:
    """The text has enough digits, and no fewer than Go would write."""
    assert parse_double(format_double(number)) == number
    assert math.copysign(1, parse_double(format_double(number))) == math.copysign(1, number)


@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(0, 999_999_999))
def test_timestamp_survives_its_text(seconds: int, nanos: int) -> None:
    """From the year 1 to the year 9999, to the nanosecond."""
    moment = cel.Timestamp(seconds * 1_000_000_000 + nanos)
    assert parse_timestamp(format_timestamp(moment)) == moment


@given(st.integers(-(10**15), 10**15))
def test_duration_survives_its_text(nanos: int) -> None:
    """But for the last nanosecond: it is written as a double of seconds, and read by cutting digits off."""
    assert abs(parse_duration(format_duration(cel.CelDuration(nanos))).nanos - nanos) <= 1


@given(st.text(max_size=20))
def test_string_literal_survives_quoting(text: str) -> None:
    """strings.quote gives a literal that CEL reads back."""
    quoted = cel.compile("strings.quote(s)", {"s": cel.STRING}).evaluate({"s": text})
    assert cel.compile(str(quoted), {}).evaluate({}) == text


@given(st.text(alphabet="abAB_-./19", max_size=12))
def test_escaped_names_are_distinct_identifiers(name: str) -> None:
    """No two properties of one object share an identifier."""
    escaped = escape(name)
    if escaped is not None:
        assert escaped.isidentifier()
        assert escape(escaped) != escaped or escaped == name


@given(st.text(max_size=30))
def test_any_text_compiles_or_is_refused_with_a_place(text: str) -> None:
    """No input makes the parser fail in another way."""
    refused: cel.CelError | None = None
    try:
        cel.compile(text, {"self": cel.DYN})
    except cel.CelError as error:
        refused = error
    assert refused is None or min(refused.line, refused.column) >= 1


@given(
    st.lists(
        st.sampled_from([*"()[]{}.,?:+-*/%<>!", "self", "1", "'a'", "&&", "||", "==", "in", "all(x, x)"]), max_size=12
    )
)
@example(["!", "-"])
def test_any_tokens_parse_or_are_refused(words: list[str]) -> None:
    """The parser gets past the lexer here."""
    with contextlib.suppress(cel.CelError):
        parse(" ".join(words))
