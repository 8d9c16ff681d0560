"""JSON and descriptions as Python text."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import examples
from navarch.project.models.expressions import WIDTH, assignment, call, docstring, keyword, layout, literal, subscript

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=10,
)


@examples(100)
@given(JSON, st.integers(0, 30))
def test_json_comes_back_from_its_literal(value: Any, indent: int) -> None:
    """In one line and in several."""
    assert ast.literal_eval(layout(literal(value), indent, used=4 * indent)) == value


@examples(100)
@given(st.text(), st.integers(0, 3))
def test_a_description_comes_back_from_its_docstring(description: str, indent: int) -> None:
    """But for white space: long lines are wrapped, and Python indents docstrings."""
    written = docstring(description, indent)
    assert inspect.cleandoc(ast.literal_eval(written.strip())).split() == description.split()


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("The owner.", '"""The owner."""'),
        ('Say "yes"', '"""Say "yes\\""""'),
        ('"yes" or "no".', '""" "yes" or "no"."""'),
        ("C:\\temp", '"""C:\\\\temp"""'),
        ("One.\n\n  - two\n  - three\n", '"""One.\n\n      - two\n      - three\n    """'),
    ],
)
def test_a_docstring_is_written_as_by_hand(description: str, expected: str) -> None:
    """One line, if it fits; inner indentation and empty lines stay."""
    assert docstring(description, 1) == f"    {expected}"


def test_a_long_statement_is_split_at_its_brackets() -> None:
    """As `ruff format` splits it, which leaves the modules alone."""
    pattern = literal("a" * 50)
    annotation = subscript(
        "Annotated", ["str", call("Meta", [keyword("max_length", "3"), keyword("pattern", pattern)])]
    )
    assert assignment("name", annotation, "None").count("\n") == 0
    renamed = call("field", [keyword("name", literal("aName")), keyword("default", "None")])
    assert assignment("a_name", annotation, renamed).splitlines() == [
        f"    a_name: Annotated[str, Meta(max_length=3, pattern={pattern})] = field(",
        '        name="aName", default=None',
        "    )",
    ]
    longer = subscript("Annotated", ["str", call("Meta", [keyword("pattern", literal("a" * WIDTH))])])
    assert assignment("name", longer, "None").splitlines() == [
        "    name: Annotated[",
        "        str,",
        "        Meta(",
        f'            pattern="{"a" * WIDTH}"',
        "        ),",
        "    ] = None",
    ]
