"""Label selectors and field selectors, with Kubernetes' semantics.

Both are immutable, print in Kubernetes' canonical form, and combine with `&`. Without requirements they select
everything. `nothing()` is a contradiction, so that it still selects nothing after it has been sent to a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

from navarch.api.names import LABEL_KEY, LABEL_VALUE, SelectorOperator, parse_label_terms
from navarch.api.strconv import parse_int64
from navarch.errors import InvalidValueError

_EQUALITY: Final = frozenset({SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS})
_PRESENCE: Final = frozenset({SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST})
_SETS: Final = frozenset({SelectorOperator.IN, SelectorOperator.NOT_IN})
_ORDER: Final = frozenset({SelectorOperator.GREATER_THAN, SelectorOperator.LESS_THAN})
_HOLDS_WITHOUT_LABEL: Final = frozenset(
    {SelectorOperator.NOT_EQUALS, SelectorOperator.NOT_IN, SelectorOperator.DOES_NOT_EXIST}
)
_WIRE_NAMES: Final = {
    SelectorOperator.EQUALS: "In",
    SelectorOperator.DOUBLE_EQUALS: "In",
    SelectorOperator.IN: "In",
    SelectorOperator.NOT_EQUALS: "NotIn",
    SelectorOperator.NOT_IN: "NotIn",
    SelectorOperator.EXISTS: "Exists",
    SelectorOperator.DOES_NOT_EXIST: "DoesNotExist",
}
_BY_WIRE_NAME: Final = {
    _WIRE_NAMES[operator]: operator
    for operator in (
        SelectorOperator.IN,
        SelectorOperator.NOT_IN,
        SelectorOperator.EXISTS,
        SelectorOperator.DOES_NOT_EXIST,
    )
}
_FIELD_TERM: Final = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)
_FIELD_PARTS: Final = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_FIELD_VALUE: Final = re.compile(r"(?:[^\\,=]|\\[\\,=])*")

_Requirement = TypeVar("_Requirement")


class LabelRequirement(msgspec.Struct, frozen=True):
    """One requirement on one label; all requirements of a selector must hold.

    Raises InvalidValueError for a key, a value or a number of values that Kubernetes refuses.

    >>> str(LabelRequirement("tier", SelectorOperator.IN, ("web", "api")))
    'tier in (api,web)'
    """

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        LABEL_KEY.check(self.key, where="label selector")
        for value in self.values:
            LABEL_VALUE.check(value, where=f"label selector, value of {self.key!r}")
        if self.operator in _PRESENCE:
            fits, expected = not self.values, "no value"
        elif self.operator in _SETS:
            fits, expected = bool(self.values), "at least one value"
        elif self.operator in _ORDER:
            fits, expected = len(self.values) == 1 and parse_int64(self.values[0]) is not None, "one whole number"
        else:
            fits, expected = len(self.values) == 1, "exactly one value"
        if not fits:
            raise InvalidValueError(
                f"label selector: expected {expected} for {self.key!r} with {self.operator.value!r}, got {self.values!r}"
            )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Returns True if the labels satisfy this requirement."""
        actual, operator = labels.get(self.key), self.operator
        if actual is None:
            return operator in _HOLDS_WITHOUT_LABEL
        if operator in _ORDER:
            return self._is_in_order(actual)
        if operator in _PRESENCE:
            return operator is SelectorOperator.EXISTS
        return (actual in self.values) != (operator in _HOLDS_WITHOUT_LABEL)

    def _is_in_order(self, actual: str) -> bool:
        number, limit = parse_int64(actual), parse_int64(self.values[0])
        if number is None or limit is None:
            return False
        return number > limit if self.operator is SelectorOperator.GREATER_THAN else number < limit

    def __str__(self) -> str:
        if self.operator is SelectorOperator.EXISTS:
            return self.key
        if self.operator is SelectorOperator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        return (
            f"{self.key} {self.operator} ({values})" if self.operator in _SETS else f"{self.key}{self.operator}{values}"
        )


class _Selector(Generic[_Requirement]):
    """The common part of both selectors; two are equal when they print alike."""

    __slots__ = ("_requirements",)

    _requirements: tuple[_Requirement, ...]

    @property
    def requirements(self) -> tuple[_Requirement, ...]:
        """The requirements, which must all hold."""
        return self._requirements

    @classmethod
    def where(cls, *requirements: _Requirement) -> Self:
        """Returns the selector with these requirements.

        >>> Labels.where(LabelRequirement("app", SelectorOperator.EXISTS))
        Labels('app')
        """
        selector = cls.__new__(cls)
        selector._requirements = cls._ordered(requirements)  # noqa: SLF001 - its own factory
        return selector

    @classmethod
    def everything(cls) -> Self:
        """Returns the selector without requirements.

        >>> Labels.everything().matches({"app": "shop"})
        True
        """
        return cls.where()

    @staticmethod
    def _ordered(requirements: Iterable[_Requirement]) -> tuple[_Requirement, ...]:
        return tuple(requirements)

    def __and__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        return self.where(*self._requirements, *other._requirements)

    def __bool__(self) -> bool:
        """Returns True if there is any requirement."""
        return bool(self._requirements)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return ",".join(map(str, self._requirements))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class Labels(_Selector[LabelRequirement]):
    """A label selector, from the text that kubectl takes, from equalities, or both.

    Keys that are no Python names go into the text or through `of`. Raises InvalidValueError for text that Kubernetes
    refuses.

    >>> Labels("tier in (web,api),!canary", app="shop")
    Labels('app=shop,!canary,tier in (api,web)')
    >>> (Labels(app="shop") & Labels("canary")).matches({"app": "shop", "canary": ""})
    True
    """

    __slots__ = ()

    def __init__(self, selector: str = "", /, **equal: str) -> None:
        _require_text(selector, "label selector: expected text such as app=shop", type(self).__name__)
        written = (LabelRequirement(*term) for term in parse_label_terms(selector))
        self._requirements = self._ordered([*written, *_equalities(equal)])

    @staticmethod
    def _ordered(requirements: Iterable[LabelRequirement]) -> tuple[LabelRequirement, ...]:
        return tuple(sorted(requirements, key=lambda requirement: requirement.key))

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """Returns the selector of objects with all these labels.

        >>> Labels.of({"app.kubernetes.io/name": "shop"})
        Labels('app.kubernetes.io/name=shop')
        """
        return cls.where(*_equalities(labels))

    @classmethod
    def nothing(cls) -> Self:
        """Returns a selector that no labels satisfy, on a server neither.

        >>> Labels.nothing()
        Labels('nothing,!nothing')
        """
        return cls("nothing,!nothing")

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Returns the selector of a LabelSelector: nothing for null, everything for an empty one.

        >>> Labels.from_wire({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "api"]}]})
        Labels('tier in (api,web)')
        """
        if value is None:
            return cls.nothing()
        selector = _expect(value, Mapping, "a LabelSelector")
        equal = _optional(selector.get("matchLabels"), dict, "matchLabels as an object")
        expressions = _optional(selector.get("matchExpressions"), list, "matchExpressions as a list")
        return cls.where(*_equalities(equal), *map(_from_expression, expressions))

    def to_wire(self) -> dict[str, Any]:
        """Returns the equivalent LabelSelector. Raises InvalidValueError for `<` and `>`, which it cannot express.

        >>> Labels("app=shop,!canary").to_wire()
        {'matchLabels': {'app': 'shop'}, 'matchExpressions': [{'key': 'canary', 'operator': 'DoesNotExist'}]}
        """
        equal: dict[str, str] = {}
        expressions = []
        for requirement in self._requirements:
            if requirement.operator in _EQUALITY and requirement.key not in equal:
                equal[requirement.key] = requirement.values[0]
            else:
                expressions.append(_to_expression(requirement))
        parts = {"matchLabels": equal, "matchExpressions": expressions}
        return {name: part for name, part in parts.items() if part}

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Returns True if the selector selects an object with these labels.

        >>> Labels("tier notin (web)").matches({"tier": "web"}), Labels("tier notin (web)").matches(None)
        (False, True)
        """
        present = labels or {}
        return all(requirement.matches(present) for requirement in self._requirements)


class FieldRequirement(msgspec.Struct, frozen=True):
    r"""One requirement on one field; `operator` is `SelectorOperator.EQUALS` or `SelectorOperator.NOT_EQUALS`.

    >>> print(FieldRequirement("metadata.name", SelectorOperator.NOT_EQUALS, "a,b"))
    metadata.name!=a\,b
    """

    path: str
    operator: SelectorOperator
    value: str

    def __str__(self) -> str:
        escaped = re.sub(r"[\\,=]", r"\\\g<0>", self.value)
        return f"{self.path}{self.operator}{escaped}"


class Fields(_Selector[FieldRequirement]):
    r"""A field selector, from the text that kubectl takes; a backslash escapes `\`, `,` and `=` in a value.

    The server decides by which fields a kind can be selected. Raises InvalidValueError for other text.

    >>> Fields("spec.nodeName=a,status.phase!=Running") & Fields.of({"metadata.name": "web"})
    Fields('spec.nodeName=a,status.phase!=Running,metadata.name=web')
    """

    __slots__ = ()

    def __init__(self, selector: str = "", /) -> None:
        _require_text(selector, "field selector: expected text such as metadata.name=a", type(self).__name__)
        terms = sorted(_FIELD_TERM.findall(selector))
        self._requirements = tuple(_field_requirement(term, selector) for term in terms)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Returns the selector of objects whose fields have these values.

        >>> Fields.of({"metadata.name": "web", "metadata.namespace": "shop"})
        Fields('metadata.name=web,metadata.namespace=shop')
        """
        return cls.where(*(FieldRequirement(path, SelectorOperator.EQUALS, fields[path]) for path in sorted(fields)))

    @classmethod
    def nothing(cls) -> Self:
        """Returns a selector that no object satisfies, on a server neither.

        >>> Fields.nothing()
        Fields('metadata.name!=,metadata.name=')
        """
        return cls("metadata.name!=,metadata.name=")

    def matches(self, fields: Mapping[str, Any] | Callable[[str], object]) -> bool:
        """Returns True if the selector selects the object, given as JSON or as a function from path to value.

        A missing field counts as empty.

        >>> Fields("status.phase!=Running").matches({"status": {"phase": "Pending"}})
        True
        """
        lookup = fields if callable(fields) else lambda path: _at_path(fields, path)
        return all(
            (_as_text(lookup(requirement.path)) == requirement.value)
            == (requirement.operator is SelectorOperator.EQUALS)
            for requirement in self._requirements
        )


def _require_text(selector: object, expected: str, kind: str) -> None:
    if not isinstance(selector, str):
        raise InvalidValueError(f"{expected}, got {selector!r}; use {kind}.of(...) for a mapping")


def _expect(value: object, kind: type[Any], expected: str) -> Any:
    if isinstance(value, kind):
        return value
    raise InvalidValueError(
        f"label selector: expected {expected}, got {value!r}; see LabelSelector in the Kubernetes API"
    )


def _optional(value: object, kind: type[Any], expected: str) -> Any:
    return kind() if value is None else _expect(value, kind, expected)


def _equalities(labels: Mapping[str, str]) -> list[LabelRequirement]:
    return [
        LabelRequirement(key, SelectorOperator.EQUALS, (_expect(value, str, f"the value of {key!r} as text"),))
        for key, value in labels.items()
    ]


def _from_expression(expression: object) -> LabelRequirement:
    parts = _expect(expression, Mapping, "an object with key, operator and values")
    key = _expect(parts.get("key"), str, "a key")
    operator = _BY_WIRE_NAME.get(_expect(parts.get("operator"), str, f"an operator for {key!r}"))
    if operator is None:
        choices = ", ".join(_BY_WIRE_NAME)
        raise InvalidValueError(f"label selector: expected one of {choices} for {key!r}, got {parts['operator']!r}")
    values = _optional(parts.get("values"), list, f"the values of {key!r} as a list")
    return LabelRequirement(
        key, operator, tuple(_expect(value, str, f"a value of {key!r} as text") for value in values)
    )


def _to_expression(requirement: LabelRequirement) -> dict[str, Any]:
    operator = _WIRE_NAMES.get(requirement.operator)
    if operator is None:
        raise InvalidValueError(f"expected a selector that a LabelSelector can express, got {str(requirement)!r}")
    expression: dict[str, Any] = {"key": requirement.key, "operator": operator}
    return {**expression, "values": list(requirement.values)} if requirement.values else expression


def _field_requirement(term: str, selector: str) -> FieldRequirement:
    parts = _FIELD_PARTS.fullmatch(term)
    if parts is None or not parts.group(1) or not _FIELD_VALUE.fullmatch(parts.group(3)):
        raise InvalidValueError(
            f"field selector {selector!r}: expected terms such as metadata.name=a or status.phase!=b, got {term!r}; "
            "put a backslash before each backslash, comma and equals sign in a value"
        )
    path, symbol, escaped = parts.groups()
    operator = SelectorOperator.NOT_EQUALS if symbol == SelectorOperator.NOT_EQUALS else SelectorOperator.EQUALS
    return FieldRequirement(path, operator, re.sub(r"\\(.)", r"\1", escaped))


def _at_path(document: object, path: str) -> object:
    for name in path.split("."):
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
