"""Names are judged as the API server judges them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.names import DNS_1035_LABEL, DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, NameRule
from navarch.errors import InvalidValueError

RULES = [DNS_LABEL, DNS_SUBDOMAIN, DNS_1035_LABEL, LABEL_KEY, LABEL_VALUE]
VALID = [
    (DNS_LABEL, ["a", "0", "a-1", "1--a", "a" * 63]),
    (DNS_SUBDOMAIN, ["a", "a.b", "1.2.3", "a-1.b-2", "a" * 253]),
    (DNS_1035_LABEL, ["a", "a-1", "a" * 63]),
    (LABEL_KEY, ["a", "A_b.c-d", "example.com/Name", "1.2/3_4", f"{'p' * 253}/{'n' * 63}"]),
    (LABEL_VALUE, ["", "a", "A_b.c-d", "0", "v" * 63]),
]
INVALID = [
    (DNS_LABEL, ["", "A", "-a", "a-", "a.b", "a_b", "a b", "ä", "a\n", "a" * 64]),
    (DNS_SUBDOMAIN, ["", "A", "a..b", ".a", "a.", "a.-b", "a_b", "a\n", "a" * 254]),
    (DNS_1035_LABEL, ["", "1a", "-a", "a-", "a.b", "a" * 64]),
    (LABEL_KEY, ["", "/", "a/", "/a", "a/b/c", "Example.com/a", "-a", "a_", "a b", f"{'p' * 254}/a", "n" * 64]),
    (LABEL_VALUE, ["-a", "a_", "a/b", "a b", "é", "v" * 64]),
]


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in VALID for name in names])
def test_valid_name_passes_and_comes_back(rule: NameRule, name: str) -> None:
    """`check` can stand inside an expression."""
    assert rule.faults(name) == []
    assert rule.check(name, where="metadata.name") == name


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in INVALID for name in names])
def test_invalid_name_is_refused_with_its_place(rule: NameRule, name: str) -> None:
    """The place, the rule, and what came."""
    assert not rule.allows(name)
    with pytest.raises(InvalidValueError, match=r"metadata\.name: expected a ") as caught:
        rule.check(name, where="metadata.name")
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "name", "suggestion"),
    [
        (DNS_LABEL, "My App", "my-app"),
        (DNS_LABEL, "--x__", "x"),
        (DNS_SUBDOMAIN, "My_App..Example.com.", "my-app.example.com"),
        (DNS_1035_LABEL, "1st-Service", "st-service"),
        (LABEL_KEY, "Example.com/My Key", "example.com/My-Key"),
        (LABEL_KEY, "my key", "my-key"),
        (LABEL_VALUE, "v1.0 (beta)", "v1.0-beta"),
        (LABEL_VALUE, f"{'v' * 62}--x", "v" * 62),
    ],
)
def test_error_suggests_a_similar_name(rule: NameRule, name: str, suggestion: str) -> None:
    """The remedy can be pasted."""
    with pytest.raises(InvalidValueError) as caught:
        rule.check(name, where="here")
    assert str(caught.value).endswith(f"; try {suggestion!r}")


def test_error_suggests_nothing_where_nothing_is_left() -> None:
    """An empty name is no remedy."""
    with pytest.raises(InvalidValueError, match=r"got '---'$"):
        DNS_LABEL.check("---", where="here")


def test_faults_are_the_sentences_of_the_api_server() -> None:
    """Word for word, its stray space included: clients match on them."""
    assert DNS_LABEL.faults("a.b") == ["must not contain dots"]
    assert DNS_LABEL.faults("A" * 64) == [
        "must be no more than 63 characters",
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
            "with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ),
    ]
    assert LABEL_KEY.faults("/") == [
        "prefix part must be non-empty",
        "name part must be non-empty",
        (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ),
    ]
    assert LABEL_VALUE.faults("v" * 64) == ["must be no more than 63 bytes"]


@given(st.sampled_from(RULES), st.text(alphabet="aB0-._/ é", max_size=80))
def test_suggestion_leaves_valid_names_alone(rule: NameRule, name: str) -> None:
    """And what is suggested in an error is always valid."""
    suggestion = rule.suggest(name)
    assert suggestion == name or not rule.allows(name)
    assert rule.suggest(suggestion) == suggestion or not rule.allows(suggestion)
