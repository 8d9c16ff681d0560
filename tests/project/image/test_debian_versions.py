"""Debian's versions, relations and control files are read as dpkg reads them."""

from __future__ import annotations

import itertools

import pytest

from navarch.errors import ImageError
from navarch.project.image.debian.control import parse_paragraph, parse_paragraphs
from navarch.project.image.debian.relations import Relation, parse_relations
from navarch.project.image.debian.versions import DebianVersion

ORDERED = (
    "0~~", "0~~a", "0~", "0", "0+", "0.", "0.1~rc1-1", "0.1-1~bpo1", "0.1-1", "0.1-1+b1", "0.1-1.1", "0.1-2", "0.1-10",
    "0.1a-1", "0.1+dfsg-1", "0.1.0-1", "0.2~~", "0.2~", "0.2", "1.0~rc1", "1.0", "1.0-1~deb12u1", "1.0-1", "1.0a", "1.0+a",
    "1.0.1", "2:0.1", "10:0",
)  # fmt: skip
"""Versions in dpkg's order, as `dpkg --compare-versions` gives it."""


def test_versions_are_ordered_as_dpkg_orders_them() -> None:
    """Each version is less than all that follow it, and equal to itself alone."""
    versions = [DebianVersion(text) for text in ORDERED]
    for (at, one), (other_at, other) in itertools.product(enumerate(versions), repeat=2):
        assert (one < other) == (at < other_at), f"{one} < {other}"
        assert (one == other) == (at == other_at), f"{one} == {other}"


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1-0"), ("0:1", "1"), ("1.0", "1.00"), ("1.01", "1.1"), ("1a", "1a0")]
)
def test_versions_that_are_written_differently_are_equal(one: str, other: str) -> None:
    """An absent epoch, number or revision is 0, and zeros before a number do not count."""
    assert DebianVersion(one) == DebianVersion(other)
    assert hash(DebianVersion(one)) == hash(DebianVersion(other))


@pytest.mark.parametrize("text", ["", "-", "1-", "1_2", "a:1", "1:", "1 2", "ü"])
def test_text_that_is_no_version_is_refused(text: str) -> None:
    """A version that dpkg would not take is an error that shows it."""
    with pytest.raises(ImageError, match="expected a Debian version"):
        DebianVersion(text)


@pytest.mark.parametrize(
    ("relation", "allowed", "refused"),
    [
        ("a (<< 2)", "2~", "2"),
        ("a (<= 2)", "2", "2-1"),
        ("a (= 2-1)", "2-1", "2-1+b1"),
        ("a (>= 2)", "2", "2~"),
        ("a (>> 2)", "2-1", "2"),
    ],
)
def test_relation_allows_versions_by_its_operator(relation: str, allowed: str, refused: str) -> None:
    """The five operators compare as dpkg does."""
    ((found,),) = parse_relations(f"{relation}".replace("a ", "aa "), where="test")
    assert found.allows(allowed)
    assert not found.allows(refused)


def test_relations_have_alternatives_versions_and_architectures() -> None:
    """A field is a list; an entry has alternatives, each with a version and an architecture."""
    found = parse_relations(
        "libc6 (>= 2.38), python3:any | python3-minimal ,\n debconf(>=0.5)|debconf-2.0", where="test"
    )
    assert found == [
        (Relation(name="libc6", operator=">=", version="2.38"),),
        (Relation(name="python3", architecture="any"), Relation(name="python3-minimal")),
        (Relation(name="debconf", operator=">=", version="0.5"), Relation(name="debconf-2.0")),
    ]
    assert Relation(name="libc6", architecture="arm64").is_for("arm64")
    assert not Relation(name="libc6", architecture="arm64").is_for("amd64")


@pytest.mark.parametrize("text", ["Libc6", "a", "libc6 (2.38)", "libc6 (>= 2) extra", "libc6 [amd64]", "libc6 ||"])
def test_text_that_is_no_relation_is_refused(text: str) -> None:
    """A relation of another form is an error that shows it."""
    with pytest.raises(ImageError, match="expected a relation"):
        parse_relations(text, where="test")


def test_paragraphs_are_separated_by_empty_lines() -> None:
    """Values may continue on further lines; comments do not count."""
    text = "A: 1\nB: 2\n 3\n# comment\n\n \nA: 4\n"
    assert parse_paragraphs(text, where="test") == [{"A": "1", "B": "2\n3"}, {"A": "4"}]


@pytest.mark.parametrize("text", ["no field", " continued", "A: 1\nA: 2", ": value"])
def test_paragraph_of_another_form_is_refused(text: str) -> None:
    """A line without a name, and a field that comes twice, are errors."""
    with pytest.raises(ImageError, match="expected `Name: value`"):
        parse_paragraph(text, where="test")
