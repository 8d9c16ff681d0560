"""Quantities read, compute and print as Kubernetes' own do."""

from __future__ import annotations

import copy
import operator
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.quantity import Quantity
from navarch.errors import InvalidValueError

# What a kube-apiserver v1.36 answers for what was sent.
CANONICAL = [
    ("0", "0"),
    ("-0", "0"),
    ("00.000", "0"),
    ("0Ki", "0"),
    ("1", "1"),
    ("1000", "1k"),
    ("1024", "1024"),
    ("1.5", "1500m"),
    ("1.50", "1500m"),
    ("0.5", "500m"),
    ("0.500", "500m"),
    (".5", "500m"),
    ("100m", "100m"),
    ("2000m", "2"),
    ("1234567", "1234567"),
    ("12000000", "12M"),
    ("1E", "1E"),
    ("100E", "100E"),
    ("1Ki", "1Ki"),
    ("8Ki", "8Ki"),
    ("1023Ki", "1023Ki"),
    ("1024Ki", "1Mi"),
    ("2000Ki", "2000Ki"),
    ("1.5Gi", "1536Mi"),
    ("1.0Ki", "1Ki"),
    ("0.5Ki", "512"),
    ("1.1Ki", "1126400m"),
    ("0.0001Ki", "102400u"),
    ("-1.5Gi", "-1536Mi"),
    ("1e3", "1e3"),
    ("1E3", "1E3"),
    ("1e20", "100e18"),
    ("1.5e3", "1500"),
    ("1000e-3", "1"),
    ("1e-9", "1e-9"),
    ("12345678901234567890", "12345678901234567890"),
]
KEPT_THOUGH_ODD = ["+5", "05", "1.", "1.500", "100.123", "+1Ki", "1e+6", "-1.234"]
TINY = [
    ("0.1n", "1n"),
    ("-0.1n", "-1n"),
    ("1e-10", "1e-9"),
    ("0.0000000011", "2n"),
    ("1.000000000001Ki", "1024000000002n"),
]
DIGITLESS = ["m", "Ki", "-", "+", "."]
NO_QUANTITIES = [
    "",
    " ",
    "1 ",
    "1Zi",
    "1K",
    "1ki",
    "1mi",
    "1e",
    "1e+",
    "1.2.3",
    "--1",
    "1_000",
    "0x10",
    "٣",
    "Pi",
    "NaN",
    "1e9999999999",
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_form_is_that_of_kubernetes(text: str, canonical: str) -> None:
    """The largest suffix of the same family without a fraction."""
    assert str(Quantity(text)) == canonical
    assert Quantity(text) == Quantity(canonical)


@pytest.mark.parametrize("text", KEPT_THOUGH_ODD)
def test_text_that_go_takes_for_canonical_is_kept(text: str) -> None:
    """The API server answers with these as they were sent."""
    assert Quantity(text).to_wire() == text


@pytest.mark.parametrize(("text", "canonical"), TINY)
def test_finer_than_nano_is_rounded_away_from_zero(text: str, canonical: str) -> None:
    """Who asks for a little gets a little."""
    assert str(Quantity(text)) == canonical


@pytest.mark.parametrize("text", DIGITLESS)
def test_text_without_digits_is_zero_where_go_says_so(text: str) -> None:
    """A lone sign or small suffix is zero to the API server."""
    assert str(Quantity(text)) == "0"


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_other_text_is_refused_with_a_remedy(text: str) -> None:
    """The error names what came and shows what to write."""
    with pytest.raises(InvalidValueError, match="expected a quantity") as caught:
        Quantity(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["8Ei", "1024Ei", "9223372036854775808Ki"])
def test_binary_amount_is_capped_at_the_largest_64_bit_number(text: str) -> None:
    """Only binary suffixes are capped, in both directions."""
    assert Quantity(text).value == 2**63 - 1
    assert Quantity(f"-{text}").value == 1 - 2**63
    assert str(Quantity(text)) == "9223372036854775807"


def test_amount_beyond_the_largest_suffix_keeps_its_value() -> None:
    """Go would print 1 here."""
    assert str(Quantity("1000E")) == "1000E"
    assert str(Quantity("1Ei") * 4096) == "4096Ei"


@pytest.mark.parametrize(
    ("wire", "canonical"), [(" 7Ki ", "7Ki"), (3, "3"), (1000, "1k"), (2.5, "2500m"), (1e22, "10e21"), (-1, "-1")]
)
def test_wire_may_be_a_string_or_a_number(wire: object, canonical: str) -> None:
    """JSON carries quantities in three ways."""
    assert Quantity.from_wire(wire).to_wire() == canonical


@pytest.mark.parametrize("wire", [None, True, [], {}, float("nan"), float("inf"), b"1"])
def test_wire_of_another_type_is_refused(wire: object) -> None:
    """Neither null nor a boolean is an amount."""
    with pytest.raises(InvalidValueError):
        Quantity.from_wire(wire)


@pytest.mark.parametrize("value", [True, None, Decimal("Infinity"), Decimal("1e9999")])
def test_constructor_refuses_what_is_no_finite_number(value: Any) -> None:
    """True is not one."""
    with pytest.raises(InvalidValueError):
        Quantity(value)


def test_decimal_goes_in_and_out_exactly() -> None:
    """No float on the way."""
    assert Quantity(Decimal("0.1")).decimal == Decimal("0.1")
    assert str(Quantity(Decimal("1e3"))) == "1k"


@pytest.mark.parametrize(
    ("text", "value", "milli"), [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1), ("1Gi", 2**30, 1000 * 2**30)]
)
def test_whole_and_milli_values_round_away_from_zero(text: str, value: int, milli: int) -> None:
    """As Value and MilliValue do."""
    assert (Quantity(text).value, Quantity(text).milli_value) == (value, milli)


def test_sum_is_written_like_its_left_side() -> None:
    """Zero on the left takes the suffixes of the right."""
    assert str(Quantity("1Ki") + Quantity("1k")) == "2024"
    assert str(Quantity("1024Ki") + Quantity("1024k")) == "2024Ki"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(Quantity("1Gi") - Quantity("512Mi")) == "512Mi"


def test_sum_builtin_works_and_keeps_the_suffixes() -> None:
    """Start value and all."""
    total = sum([Quantity("1Gi"), Quantity("1Gi"), Quantity("2Gi")])
    assert str(total) == "4Gi"


def test_integers_take_part_in_arithmetic_and_comparison() -> None:
    """An amount without suffix is a number."""
    assert 5 - Quantity("1500m") == Quantity("3.5")
    assert Quantity("1k") == 1000
    assert hash(Quantity("1k")) == hash(1000)
    assert Quantity("1m") > 0
    assert -1 < Quantity("-100m") <= Quantity("-0.1") < 0 < abs(Quantity("-1"))


def test_multiplication_takes_whole_and_decimal_factors() -> None:
    """A finer result is rounded up to nano."""
    assert str(Quantity("250m") * 3) == "750m"
    assert str(2 * Quantity("1Gi")) == "2Gi"
    assert str(Quantity("1Gi") * Decimal("0.5")) == "512Mi"
    assert str(Quantity("1n") * Decimal("0.5")) == "1n"
    assert str(-Quantity("1Ki")) == "-1Ki"


@pytest.mark.parametrize("factor", ["NaN", "Infinity", "-Infinity"])
def test_multiplication_takes_no_factor_without_a_value(factor: str) -> None:
    """It would give an amount that cannot be written."""
    with pytest.raises(InvalidValueError, match="expected a quantity, got Decimal"):
        Quantity("1") * Decimal(factor)


@pytest.mark.parametrize("other", ["1", 1.5, None])
def test_other_types_take_no_part(other: Any) -> None:
    """Text must be made a quantity first; a float never silently becomes one."""
    one = Quantity("1")
    assert one != other
    for compute in (operator.add, operator.sub, operator.mul, operator.lt):
        with pytest.raises(TypeError):
            compute(one, other)


def test_quantity_is_truthy_unless_zero() -> None:
    """As numbers are."""
    assert Quantity("1n")
    assert not Quantity("0Gi")


def test_copies_and_pickles_are_equal() -> None:
    """Objects that hold quantities are copied and sent about."""
    amount = Quantity("1.5Gi")
    assert copy.deepcopy(amount) is copy.copy(amount) is amount
    assert repr(pickle.loads(pickle.dumps(amount))) == "Quantity('1536Mi')"


SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E-3", "e6"])
QUANTITIES = st.builds(
    lambda number, suffix: Quantity(f"{number:f}{suffix}"),
    st.decimals(min_value=-(10**6), max_value=10**6, places=3),
    SUFFIXES,
)


@given(QUANTITIES)
def test_canonical_form_reads_back_as_itself(amount: Quantity) -> None:
    """Printing loses nothing and is stable."""
    again = Quantity(str(amount))
    assert again == amount
    assert str(again) == str(amount)


@given(QUANTITIES, QUANTITIES)
def test_addition_and_subtraction_undo_each_other(left: Quantity, right: Quantity) -> None:
    """Exactly, never nearly."""
    assert (left + right) - right == left
    assert left + right == right + left
    assert left - right == -(right - left)


@given(QUANTITIES, QUANTITIES)
def test_order_and_hash_follow_the_amount(left: Quantity, right: Quantity) -> None:
    """Suffixes do not matter."""
    assert (left < right, left == right, left > right).count(True) == 1
    assert (left < right) == (left.decimal < right.decimal)
    assert left != right or hash(left) == hash(right)


@given(QUANTITIES, st.integers(-50, 50))
def test_multiplication_is_repeated_addition(amount: Quantity, times: int) -> None:
    """Also for negative factors."""
    assert amount * times == sum([amount] * abs(times), Quantity(0)) * (1 if times >= 0 else -1)
