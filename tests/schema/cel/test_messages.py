"""What the author of a rule reads when it is wrong."""

from __future__ import annotations

import pytest

from navarch.errors import DefinitionError, NavarchError
from navarch.schema import cel

SCHEMA = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "ratio": {"type": "number"},
        "name": {"type": "string"},
        "foo-bar": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "inner": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}
VARIABLES = {"self": cel.type_of_schema(SCHEMA), "oldSelf": cel.optional_of(cel.type_of_schema(SCHEMA))}

MISTAKES = [
    ("self.replcas > 1", "1:6: self has no field 'replcas'; did you mean 'replicas'?"),
    ("self.inner.sze > 1", "1:12: self.inner has no field 'sze'; did you mean 'size'?"),
    ("self.inner.zzz > 1", "1:12: self.inner has no field 'zzz'; it has size"),
    (
        "self.foo-bar == ''",
        "1:6: self has no field 'foo'; write 'foo__dash__bar', which is how rules spell the name of that field",
    ),
    ("replicas > 1", "1:1: nothing is called 'replicas'; write self.replicas"),
    ("sef.replicas > 1", "1:1: nothing is called 'sef'; did you mean 'self'?"),
    ("xyz", "1:1: nothing is called 'xyz'; the rule knows oldSelf, self"),
    ("duration > self", "1:1: nothing is called 'duration'; it is a function: write duration(…)"),
    ("self.replicas = 1", "1:15: unexpected '='; compare with `==`"),
    ("self.replicas &  1", "1:15: unexpected '&'; write `&&`"),
    (
        "self.name == 'a",
        "1:14: unexpected \"'\"; close the string with the quote it began with, and double each backslash or use r'…'",
    ),
    ("self.replicas >", "1:16: the rule ends here; expected a value: a name, a literal, `(`, `[` or `{`"),
    ("(self.replicas > 1", "1:19: the rule ends here; expected `)`"),
    ("self.replicas > 1 self.name", "1:19: unexpected 'self'; expected an operator or the end of the rule"),
    (
        "self.replicas > 1 ?\n  true",
        "2:7: the rule ends here; expected `:` and the value for when the condition is false",
    ),
    ("self.in", "1:6: unexpected 'in'; expected a field or function name; write `__in__` for a field of that name"),
    ("let > 1", "1:1: 'let' is a reserved word; choose another name"),
    ("self.replicas > 'a'", "1:15: `>` does not take (int, string); convert one side, for instance string(…)"),
    ("self.name - 'a' == ''", "1:11: `-` does not take (string, string)"),
    ("self.replicas == 'a'", "1:15: `==` does not take (int, string); convert one side, for instance string(…)"),
    ("self.replicas == self.ratio", "1:15: `==` does not take (int, double); convert one side, for instance double(…)"),
    (
        "self.replicas + self.ratio > 1.0",
        "1:15: `+` does not take (int, double); convert one side, for instance double(…)",
    ),
    (
        "self.name == null",
        "1:11: `==` does not take (string, null_type); a value of that type is never null: test it with has(…)",
    ),
    (
        "self.?name == 'a'",
        "1:12: `==` does not take (optional_type(string), string); take the value out of the optional first, with orValue(…)",
    ),
    ("self.name.size > 1", "1:11: a value of type string has no fields; expected an object or a map"),
    ("sizze(self.name) > 1", "1:1: no function is called 'sizze'; did you mean 'size'?"),
    ("self.name.startWith('a')", "1:11: no function is called 'startWith'; did you mean 'startsWith'?"),
    ("self.name.startsWith(1)", "1:11: string has no method startsWith(int); expected string.startsWith(string)"),
    (
        "startsWith(self.name, 'a')",
        "1:1: startsWith() does not take (string, string); it is a method: write value.name(…)",
    ),
    ("self.name.isURL()", "1:11: string has no method isURL(); it is a function: pass the value as its argument"),
    ("self.replicas && true", "1:6: a term of `&&` is of type int; expected bool"),
    ("self.tags.all(t, t)", "1:18: the condition of all() is of type string; expected bool"),
    ("self.tags.all('t', true)", "1:15: all() cannot bind this; expected a simple name; write all(x, …)"),
    ("self.name.all(c, true)", "1:11: all() does not go over a value of type string; expected a list or a map"),
    ("has(self)", "1:5: has() does not test this; expected a field selection; write has(a.b)"),
    (
        "[1, 'a'] == []",
        "1:5: a list of int has an item of type string; expected int; convert it, or wrap every item in dyn(…)",
    ),
    ("'%d'.format([self.name]) == ''", "1:19: %d does not write a value of type string; expected int, uint"),
    ("'%s'.format([]) == ''", "1:6: format() has 1 clauses and 0 values; expected one value for each clause"),
    ("self", "1:1: the rule gives object; expected bool"),
    ("self.replicas", "1:1: the rule gives int; expected bool"),
]


@pytest.mark.parametrize(("expression", "message"), MISTAKES)
def test_mistake_gives_place_and_remedy(expression: str, message: str) -> None:
    """One line: where, what, what was expected, what to do."""
    with pytest.raises(cel.CelError) as caught:
        cel.compile(expression, VARIABLES, result=cel.BOOL)
    assert str(caught.value) == message


def test_error_carries_its_parts() -> None:
    """A generator can place the message in its own report."""
    with pytest.raises(cel.CelError) as caught:
        cel.compile("true &&\n  self.inner.sizes > 1", VARIABLES)
    error = caught.value
    assert (error.line, error.column) == (2, 14)
    assert error.problem == "self.inner has no field 'sizes'"
    assert error.remedy == "did you mean 'size'?"
    assert isinstance(error, DefinitionError)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("self.tags[3] == ''", "index out of bounds: 3 in a list of 1"),
        ("self.inner.size == 1", "no such key: size"),
        ("1 / self.replicas == 1", "division by zero"),
        ("dyn(self.name) + self.replicas == 1", "no such overload: + of (string, int)"),
        ("int(self.name) == 1", "'a' cannot be converted to int"),
        ("oldSelf.value() == self", "value() of an optional that has none; use orValue(…)"),
    ],
)
def test_failed_evaluation_says_why(expression: str, message: str) -> None:
    """The sentence an API server would put into its answer."""
    program = cel.compile(expression, VARIABLES)
    spec = cel.value_of({"replicas": 0, "name": "a", "tags": ["x"], "inner": {}}, SCHEMA)
    with pytest.raises(cel.CelEvaluationError) as caught:
        program.evaluate({"self": spec, "oldSelf": cel.NONE})
    assert str(caught.value) == message
    assert isinstance(caught.value, NavarchError)


def test_missing_variable_is_named() -> None:
    """A caller that forgot a variable is told which."""
    with pytest.raises(cel.CelEvaluationError, match="the variable 'self' has no value"):
        cel.compile("self.replicas > 1", VARIABLES).evaluate({})


def test_rule_without_re2_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 is an extra; a rule that needs it says which one to install."""
    from navarch.errors import ConfigError
    from navarch.schema.patterns import compile_pattern

    compile_pattern.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    with pytest.raises(ConfigError, match=r"pip install navarch\[schema\]"):
        cel.compile("self.name.matches('never seen before')", VARIABLES)


def test_deep_nesting_is_refused_rather_than_overflowing() -> None:
    """Python's own recursion limit is never what ends a rule."""
    with pytest.raises(cel.CelError, match=r"more than 250|nested too deeply"):
        cel.compile("(" * 300 + "1" + ")" * 300, {})
    with pytest.raises(cel.CelError, match="more than 250"):
        cel.compile("+".join(["1"] * 300), {})
    assert cel.compile("+".join(["1"] * 240), {}).evaluate({}) == 240
    assert cel.compile("||".join(["false"] * 2000), {}).evaluate({}) is False
    assert cel.compile("(" * 120 + "1" + ")" * 120, {}).evaluate({}) == 1


def test_very_long_rule_is_refused() -> None:
    """The server's limit on the length of an expression."""
    with pytest.raises(cel.CelError, match="at most 100000"):
        cel.compile(" " * 100_001, {})
