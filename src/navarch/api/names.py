"""The syntax of object names, labels and label selectors.

Each rule for names serves two callers: `faults` returns the API server's own sentences, and `check` raises for the
user, with a valid suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from navarch.errors import InvalidValueError


class SelectorOperator(StrEnum):
    """The operator between a key and its values, as the text of a selector has it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


class LabelTerm(NamedTuple):
    """One requirement as it was written, with an unchecked key and unchecked values."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...]


_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_END: Final = ""
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", _END})
_BINARY_OPERATORS: Final = {
    operator.value: operator
    for operator in SelectorOperator
    if operator not in {SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST}
}


def parse_label_terms(text: str) -> list[LabelTerm]:
    """Returns the requirements in the order of the text. Raises InvalidValueError for text that Kubernetes refuses.

    >>> parse_label_terms("app=shop")
    [LabelTerm(key='app', operator=<SelectorOperator.EQUALS: '='>, values=('shop',))]
    """
    return _SelectorParser(text).terms()


class _SelectorParser:
    """Parses the tokens from the front; `in` and `notin` are operators only where an operator is allowed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ahead: list[str] = _TOKEN.findall(text)[::-1]

    def terms(self) -> list[LabelTerm]:
        found: list[LabelTerm] = []
        while self._next != _END:
            if found:
                self._take({","}, "',' or the end")
            found.append(self._term())
        return found

    @property
    def _next(self) -> str:
        return self._ahead[-1] if self._ahead else _END

    def _term(self) -> LabelTerm:
        negated = self._skip("!")
        key = self._word("a label key")
        if negated:
            return LabelTerm(key, SelectorOperator.DOES_NOT_EXIST, ())
        if self._next in {",", _END}:
            return LabelTerm(key, SelectorOperator.EXISTS, ())
        operator = _BINARY_OPERATORS[self._take(_BINARY_OPERATORS, "=, ==, !=, in, notin, < or >")]
        if operator in {SelectorOperator.IN, SelectorOperator.NOT_IN}:
            return LabelTerm(key, operator, self._value_set())
        return LabelTerm(key, operator, (self._value(),))

    def _value(self) -> str:
        return "" if self._next in {",", _END} else self._word("a label value")

    def _value_set(self) -> tuple[str, ...]:
        """Parses values in parentheses; nothing between two commas is the empty value."""
        self._take({"("}, "'('")
        values = {self._element()}
        while self._take({",", ")"}, "',' or ')'") == ",":
            values.add(self._element())
        return tuple(sorted(values))

    def _element(self) -> str:
        return "" if self._next in {",", ")"} else self._word("a label value")

    def _word(self, expected: str) -> str:
        if self._next in _SYMBOLS:
            raise self._unexpected(expected)
        return self._ahead.pop()

    def _take(self, allowed: Container[str], expected: str) -> str:
        if self._next not in allowed:
            raise self._unexpected(expected)
        return self._ahead.pop()

    def _skip(self, symbol: str) -> bool:
        found = self._next == symbol
        if found:
            self._ahead.pop()
        return found

    def _unexpected(self, expected: str) -> InvalidValueError:
        got = f"{self._next!r}" if self._next else "the end"
        return InvalidValueError(
            f"label selector {self._text!r}: expected {expected}, got {got}; "
            "write requirements such as a=b, a!=b, a in (b,c), a notin (b,c), a and !a, with commas between them"
        )


_LABEL_MAX: Final = 63
_SUBDOMAIN_MAX: Final = 253

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY_NAME})?"

_DNS_LABEL_RE: Final = re.compile(_DNS_LABEL)
_DNS_SUBDOMAIN_RE: Final = re.compile(_DNS_SUBDOMAIN)
_DNS_1035_LABEL_RE: Final = re.compile(_DNS_1035_LABEL)
_KEY_NAME_RE: Final = re.compile(_KEY_NAME)
_LABEL_VALUE_RE: Final = re.compile(_LABEL_VALUE)
_ENDS: Final = re.compile("^[^A-Za-z0-9]+|[^A-Za-z0-9]+$")


class NameRule(msgspec.Struct, frozen=True):
    """One rule for names, such as `DNS_LABEL`.

    >>> DNS_LABEL.allows("web-1")
    True
    >>> DNS_LABEL.check("Web_1", where="metadata.name")
    Traceback (most recent call last):
    navarch.errors.InvalidValueError: metadata.name: expected a DNS label (at most 63 lower case letters, digits and '-', a letter or digit at both ends), got 'Web_1'; try 'web-1'
    """

    description: str
    faults: Callable[[str], list[str]]
    """Returns the API server's sentences about a name; none if it is valid."""
    suggest: Callable[[str], str]
    """Returns a similar name, valid if one can be made of it."""

    def allows(self, name: str) -> bool:
        """Returns True if the name is valid."""
        return not self.faults(name)

    def check(self, name: str, *, where: str) -> str:
        """Returns a valid name. Raises InvalidValueError with `where`, the rule and a suggestion for another."""
        if self.allows(name):
            return name
        suggestion = self.suggest(name)
        remedy = f"; try {suggestion!r}" if self.allows(suggestion) else ""
        raise InvalidValueError(f"{where}: expected {self.description}, got {name!r}{remedy}")


def _fault(sentence: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{sentence} (e.g. {shown}regex used for validation is '{pattern}')"


def _length_faults(name: str, most: int, unit: str) -> list[str]:
    """Kubernetes always counts bytes, but calls them characters in the names of objects."""
    return [f"must be no more than {most} {unit}"] if len(name.encode(errors="replace")) > most else []


def _dns_label_faults(name: str) -> list[str]:
    faults = _length_faults(name, _LABEL_MAX, "characters")
    if _DNS_LABEL_RE.fullmatch(name):
        return faults
    if _DNS_SUBDOMAIN_RE.fullmatch(name):
        return [*faults, "must not contain dots"]
    sentence = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*faults, _fault(sentence, _DNS_LABEL, "my-name", "123-abc")]


def _dns_subdomain_faults(name: str, unit: str = "characters") -> list[str]:
    faults = _length_faults(name, _SUBDOMAIN_MAX, unit)
    if _DNS_SUBDOMAIN_RE.fullmatch(name):
        return faults
    sentence = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*faults, _fault(sentence, _DNS_SUBDOMAIN, "example.com")]


def _dns_1035_label_faults(name: str) -> list[str]:
    faults = _length_faults(name, _LABEL_MAX, "characters")
    if _DNS_1035_LABEL_RE.fullmatch(name):
        return faults
    sentence = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    )
    return [*faults, _fault(sentence, _DNS_1035_LABEL, "my-name", "abc-123")]


_KEY_SENTENCE: Final = _fault(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _KEY_NAME,
    "MyName",
    "my.name",
    "123-abc",
)


def _label_key_faults(key: str) -> list[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        optional_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_SENTENCE} {optional_prefix}"]
    return [*(_key_prefix_faults(prefix) if slash else []), *_key_name_faults(name)]


def _key_prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {fault}" for fault in _dns_subdomain_faults(prefix, "bytes")]


def _key_name_faults(name: str) -> list[str]:
    faults = _length_faults(name, _LABEL_MAX, "bytes") if name else ["must be non-empty"]
    if not _KEY_NAME_RE.fullmatch(name):
        faults.append(_KEY_SENTENCE)
    return [f"name part {fault}" for fault in faults]


def _label_value_faults(value: str) -> list[str]:
    faults = _length_faults(value, _LABEL_MAX, "bytes")
    if _LABEL_VALUE_RE.fullmatch(value):
        return faults
    sentence = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*faults, _fault(sentence, _LABEL_VALUE, "MyValue", "my_value", "12345")]


def _similar(text: str, foreign: str, most: int) -> str:
    """Returns the text with each run of foreign characters replaced by a dash, cut to size, with letters or digits at
    both ends.
    """
    return _ENDS.sub("", _ENDS.sub("", re.sub(foreign, "-", text))[:most])


def _similar_dns_label(name: str) -> str:
    return _similar(name.lower(), "[^a-z0-9-]+", _LABEL_MAX)


def _similar_dns_subdomain(name: str) -> str:
    parts = (_similar(part, "[^a-z0-9-]+", _SUBDOMAIN_MAX) for part in name.lower().split("."))
    return _similar(".".join(part for part in parts if part), "[^a-z0-9.-]+", _SUBDOMAIN_MAX)


def _similar_dns_1035_label(name: str) -> str:
    return _similar_dns_label(re.sub("^[^A-Za-z]+", "", name))


def _similar_label_key(key: str) -> str:
    prefix, slash, name = key.partition("/")
    if not slash:
        return _similar_label_value(key)
    return f"{_similar_dns_subdomain(prefix)}/{_similar_label_value(name)}"


def _similar_label_value(value: str) -> str:
    return _similar(value, "[^A-Za-z0-9_.-]+", _LABEL_MAX)


DNS_LABEL: Final = NameRule(
    "a DNS label (at most 63 lower case letters, digits and '-', a letter or digit at both ends)",
    _dns_label_faults,
    _similar_dns_label,
)
"""RFC 1123 label: namespaces, containers, ports of services."""

DNS_SUBDOMAIN: Final = NameRule(
    "a DNS subdomain (at most 253 lower case letters, digits, '-' and '.', a letter or digit around each '.')",
    _dns_subdomain_faults,
    _similar_dns_subdomain,
)
"""RFC 1123 subdomain: the names of most objects, and API groups."""

DNS_1035_LABEL: Final = NameRule(
    "a DNS-1035 label (at most 63 lower case letters, digits and '-', starting with a letter, no '-' at the end)",
    _dns_1035_label_faults,
    _similar_dns_1035_label,
)
"""RFC 1035 label: services, and the plural names of custom resources."""

LABEL_KEY: Final = NameRule(
    "a label key (at most 63 letters, digits, '-', '_' and '.', after an optional DNS subdomain and '/')",
    _label_key_faults,
    _similar_label_key,
)
"""Qualified name: the keys of labels and annotations, finalizers, condition types."""

LABEL_VALUE: Final = NameRule(
    "a label value (empty, or at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends)",
    _label_value_faults,
    _similar_label_value,
)
"""The values of labels."""
