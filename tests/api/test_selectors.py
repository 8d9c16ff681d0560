"""Selectors read, print and match as Kubernetes' own do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.names import SelectorOperator
from navarch.api.selectors import FieldRequirement, Fields, LabelRequirement, Labels
from navarch.errors import InvalidValueError

CANONICAL = [
    ("", ""),
    ("  \t\n", ""),
    ("a=b", "a=b"),
    ("a==b", "a==b"),
    ("a != b", "a!=b"),
    ("a=", "a="),
    ("a=,b", "a=,b"),
    ("b,a", "a,b"),
    ("! a", "!a"),
    ("a in(c,b)", "a in (b,c)"),
    ("a notin ( b )", "a notin (b)"),
    ("a in (b,b)", "a in (b)"),
    ("a in ()", "a in ()"),
    ("a in (,)", "a in ()"),
    ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
    ("in in (in,notin),notin", "in in (in,notin),notin"),
    ("a>5,b<3", "a>5,b<3"),
    ("app.kubernetes.io/name=x", "app.kubernetes.io/name=x"),
]
NO_LABEL_SELECTORS = [
    ",",
    "a,",
    ",a",
    "a,,b",
    "=b",
    "a b",
    "a=b c",
    "!a=b",
    "!!a",
    "a===b",
    "a=b=c",
    "a in b",
    "a in (b",
    "a in (b c)",
    "a in (b))",
    "a in (=)",
    "a in",
    "a exists",
    "a>x",
    "a>",
    "a=(b)",
    "-a=b",
    "a=-b",
    "a/b/c",
    "a=é",
    f"{'k' * 64}=b",
    f"a={'v' * 64}",
    "a>99999999999999999999",
]
MATCHES = [
    ("", {}, True),
    ("a=b", {"a": "b"}, True),
    ("a=b", {"a": "c"}, False),
    ("a=b", {}, False),
    ("a=", {"a": ""}, True),
    ("a=", {}, False),
    ("a!=b", {"a": "c"}, True),
    ("a!=b", {}, True),
    ("a!=b", {"a": "b"}, False),
    ("a in (b,c)", {"a": "c"}, True),
    ("a in (b,c)", {}, False),
    ("a notin (b,c)", {"a": "b"}, False),
    ("a notin (b,c)", {}, True),
    ("a", {"a": ""}, True),
    ("a", {"b": ""}, False),
    ("!a", {}, True),
    ("!a", {"a": ""}, False),
    ("a>5", {"a": "6"}, True),
    ("a>5", {"a": "5"}, False),
    ("a<5", {"a": "+4"}, True),
    ("a<5", {"a": "x"}, False),
    ("a<5", {"a": "99999999999999999999"}, False),
    ("a<5", {}, False),
    ("a=b,c", {"a": "b"}, False),
    ("a=b,c", {"a": "b", "c": "d"}, True),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_label_selector_prints_as_kubernetes_does(text: str, canonical: str) -> None:
    """Sorted by key, the values of a set too."""
    assert str(Labels(text)) == canonical
    assert Labels(canonical) == Labels(text)


@pytest.mark.parametrize("text", NO_LABEL_SELECTORS)
def test_other_text_is_no_label_selector(text: str) -> None:
    """Grammar, keys and values are all checked."""
    with pytest.raises(InvalidValueError, match="label selector"):
        Labels(text)


def test_grammar_error_says_what_was_expected_and_what_to_write() -> None:
    """With the selector it happened in."""
    with pytest.raises(InvalidValueError) as caught:
        Labels("a in (b c)")
    assert str(caught.value).startswith("label selector 'a in (b c)': expected ',' or ')', got 'c'; write")
    with pytest.raises(InvalidValueError, match="expected a label key, got the end"):
        Labels("a,")


@pytest.mark.parametrize(("text", "labels", "selected"), MATCHES)
def test_label_selector_matches_as_kubernetes_does(text: str, labels: dict[str, str], selected: bool) -> None:
    """A missing label satisfies what is negative."""
    assert Labels(text).matches(labels) is selected


def test_labels_are_built_from_names_mappings_and_text() -> None:
    """All ways lead to the same selector."""
    assert Labels(app="web") == Labels.of({"app": "web"}) == Labels("app=web")
    assert str(Labels("tier in (a,b)", app="web")) == "app=web,tier in (a,b)"
    assert hash(Labels(app="web")) == hash(Labels("app = web"))
    assert Labels(app="web") != Labels(app="api")
    assert Labels(app="web") != "app=web"


def test_label_values_must_be_valid_text() -> None:
    """A number is not quietly made a label."""
    number: Any = 5
    with pytest.raises(InvalidValueError, match="as text"):
        Labels(app=number)
    with pytest.raises(InvalidValueError, match="try 'a-b'"):
        Labels(app="a b")


@pytest.mark.parametrize("selector", [Labels, Fields])
def test_a_mapping_is_no_text(selector: Any) -> None:
    """Who passes labels as they stand on an object is told of `of`."""
    with pytest.raises(InvalidValueError, match=r"selector: expected text .*, got \{'a': 'b'\}; use \w+\.of\(\.\.\.\)"):
        selector({"a": "b"})


def test_everything_and_nothing_keep_their_meaning_on_the_way() -> None:
    """Also as text and as a LabelSelector, where nothing is easily lost."""
    assert not Labels.everything()
    assert Labels.everything() == Labels()
    for nothing in (Labels.nothing(), Labels(str(Labels.nothing())), Labels.from_wire(Labels.nothing().to_wire())):
        assert nothing
        assert not nothing.matches({})
        assert not nothing.matches({"nothing": ""})


def test_selectors_of_one_kind_combine() -> None:
    """Both must hold."""
    assert str(Labels("b") & Labels(a="c")) == "a=c,b"
    assert str(Fields("b=1") & Fields("a!=2")) == "b=1,a!=2"
    fields: Any = Fields("a=1")
    with pytest.raises(TypeError):
        Labels("a") & fields


def test_structured_selector_is_read() -> None:
    """Equalities and expressions."""
    wire = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "zone", "operator": "NotIn", "values": ["x"]},
            {"key": "new", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist", "values": []},
        ],
    }
    selector = Labels.from_wire(wire)
    assert str(selector) == "app=web,new,!old,tier in (a,b),zone notin (x)"
    expressions = selector.to_wire()["matchExpressions"]
    assert {"key": "tier", "operator": "In", "values": ["b", "a"]} in expressions


def test_null_selects_nothing_and_empty_selects_everything() -> None:
    """As the API documents it."""
    assert Labels.from_wire(None) == Labels.nothing()
    empties: list[dict[str, Any]] = [{}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": None}]
    for empty in empties:
        assert Labels.from_wire(empty) == Labels.everything()
    assert Labels.everything().to_wire() == {}


@pytest.mark.parametrize(
    "wire",
    [
        [],
        "app=web",
        {"matchLabels": []},
        {"matchLabels": {"a": 1}},
        {"matchLabels": {"a b": "c"}},
        {"matchExpressions": {}},
        {"matchExpressions": ["a"]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "a"}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
    ],
)
def test_other_structures_are_refused(wire: object) -> None:
    """Where the API server would refuse them."""
    with pytest.raises(InvalidValueError, match="label selector"):
        Labels.from_wire(wire)


def test_two_values_for_one_label_survive_as_expressions() -> None:
    """An object cannot have one key twice."""
    wire = Labels("a=b,a=c").to_wire()
    assert wire == {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["c"]}]}


def test_order_cannot_be_structured() -> None:
    """LabelSelector has no Gt."""
    with pytest.raises(InvalidValueError, match="'a>5'"):
        Labels("a>5").to_wire()


@pytest.mark.parametrize(
    ("operator", "values"),
    [(SelectorOperator.EQUALS, ()), (SelectorOperator.EQUALS, ("a", "b")), (SelectorOperator.GREATER_THAN, ("1", "2"))],
)
def test_requirement_with_the_wrong_number_of_values_is_refused(
    operator: SelectorOperator, values: tuple[str, ...]
) -> None:
    """Whoever builds it."""
    with pytest.raises(InvalidValueError, match="expected"):
        LabelRequirement("key", operator, values)


VALUES = st.sampled_from(["", "a", "b", "c", "7"])
KEYS = st.sampled_from(["a", "b", "x.y/z", "in"])
TERMS = st.one_of(
    st.builds(lambda key, op, value: f"{key}{op}{value}", KEYS, st.sampled_from(["=", "==", "!="]), VALUES),
    st.builds(
        lambda key, op, values: f"{key} {op} ({','.join(values)})",
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.lists(VALUES),
    ),
    st.builds(lambda mark, key: f"{mark}{key}", st.sampled_from(["", "!"]), KEYS),
)


@given(st.lists(TERMS), st.dictionaries(KEYS, VALUES))
def test_text_and_structure_mean_the_same(terms: list[str], labels: dict[str, str]) -> None:
    """Through print and wire and back."""
    selector = Labels(",".join(terms))
    assert Labels(str(selector)) == selector
    assert Labels.from_wire(selector.to_wire()).matches(labels) == selector.matches(labels)
    assert selector.matches(labels) == all(Labels(term).matches(labels) for term in terms)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (",,", ""),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        ("a!=b", "a!=b"),
        ("b=1,a=2", "a=2,b=1"),
        ("a=", "a="),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("metadata.name= x", "metadata.name= x"),
    ],
)
def test_field_selector_prints_as_kubernetes_does(text: str, canonical: str) -> None:
    """Terms are sorted, values escaped."""
    assert str(Fields(text)) == canonical


@pytest.mark.parametrize("text", ["a", "=b", "a=b=c", "a in (b)", "a=b\\", r"a=\x", "a,b=c", "!=b"])
def test_other_text_is_no_field_selector(text: str) -> None:
    """The error explains the escaping."""
    with pytest.raises(InvalidValueError, match="backslash"):
        Fields(text)


def test_field_selector_matches_objects_and_functions() -> None:
    """Missing is empty; numbers and booleans count as they are written in JSON."""
    pod = {"metadata": {"name": "web"}, "spec": {"replicas": 3, "paused": True, "node": None}}
    for text in (
        "metadata.name=web",
        "spec.replicas=3",
        "spec.paused=true",
        "spec.node=",
        "status.phase=",
        "metadata.name.x=",
    ):
        assert Fields(text).matches(pod), text
    assert not Fields("metadata.name!=web").matches(pod)
    assert not Fields("metadata.name=web,spec.replicas=4").matches(pod)
    assert Fields("a.b=c").matches({"a.b": "c"}.get)


def test_fields_are_built_from_mappings() -> None:
    """Any value can be meant."""
    selector = Fields.of({"b": "1,2", "a": "x"})
    assert str(selector) == r"a=x,b=1\,2"
    assert selector.requirements[1] == FieldRequirement("b", SelectorOperator.EQUALS, "1,2")
    assert not Fields.nothing().matches({"metadata": {"name": "x"}})
    assert not Fields.nothing().matches({})
    assert Fields.everything().matches({})


@given(st.dictionaries(st.sampled_from(["a", "b.c", "d"]), st.text()))
def test_field_values_survive_escaping(fields: dict[str, str]) -> None:
    """Backslashes, commas, equals signs, line breaks."""
    selector = Fields.of(fields)
    assert Fields(str(selector)) == selector
    assert Fields(str(selector)).matches(fields.get)
