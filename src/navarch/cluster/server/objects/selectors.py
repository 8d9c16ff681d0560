"""Label and field selectors of lists and watches, with Kubernetes' messages for malformed ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from navarch.api import Fields, Labels
from navarch.api.names import LABEL_KEY, LABEL_VALUE
from navarch.cluster.server.objects.registry import seen_all
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.cluster.server.wire.status_errors import bad_request
from navarch.cluster.storage import Stored
from navarch.errors import InvalidValueError

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_OPERATORS: Final = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})
_LISTED: Final = "in, notin, =, ==, !=, gt, lt"
_WHOLE: Final = re.compile(r"[+-]?\d+$")
_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
_VERSIONS_KEPT: Final = 256
_EMPTY: Json = {"metadata": {}}


class _SelectorSyntaxError(Exception):
    """What is wrong."""


def label_selector_fault(text: str) -> str:
    """The first thing that is wrong with a label selector; empty if nothing is.

    >>> label_selector_fault("a=b=c"), label_selector_fault("a in (b)")
    ("found '=', expected: ',' or 'end of string'", '')
    """
    try:
        _LabelSelectorParser(text).check()
    except _SelectorSyntaxError as fault:
        return str(fault)
    return ""


def field_selector_fault(text: str) -> str:
    """The same for a field selector."""
    terms = [term for term in re.split(r"(?<!\\),", text) if term]
    odd = next((term for term in sorted(terms) if not re.search(r"(?<!\\)=", term)), "")
    return f"invalid selector: '{text}'; can't understand '{odd}'" if odd else ""


class _LabelSelectorParser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text.rstrip()), ""]
        self._place = 0

    def check(self) -> None:
        while self._next:
            if self._next in _SYMBOLS - {"!"}:
                raise _SelectorSyntaxError(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            try:
                self._requirement()
            except _SelectorSyntaxError as fault:
                raise _SelectorSyntaxError(f"unable to parse requirement: {fault}") from None
            if (end := self._taken()) not in {"", ","}:
                raise _SelectorSyntaxError(f"found '{end}', expected: ',' or 'end of string'")
            if end and (not self._next or self._next in _SYMBOLS - {"!"}):
                raise _SelectorSyntaxError(f"found '{self._next}', expected: identifier after ','")

    @property
    def _next(self) -> str:
        return self._tokens[self._place]

    def _taken(self) -> str:
        found = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return found

    def _requirement(self) -> None:
        negated = self._next == "!"
        key = self._word() if not negated or self._taken() else ""
        if said := LABEL_KEY.faults(key):
            raise _SelectorSyntaxError(str(invalid("<nil>", key, "; ".join(said))))
        if self._next in {"", ","}:
            return
        operator = self._taken()
        if operator not in _OPERATORS:
            raise _SelectorSyntaxError(f"found '{operator}', expected: {_LISTED}")
        values = self._values() if operator in {"in", "notin"} else [self._value()]
        self._check_values(key, operator, sorted(set(values)))

    def _word(self) -> str:
        word = self._taken()
        if not word or word in _SYMBOLS:
            raise _SelectorSyntaxError(f"found '{word}', expected: identifier")
        return word

    def _value(self) -> str:
        return "" if self._next in {"", ","} else self._word()

    def _values(self) -> list[str]:
        if (opening := self._taken()) != "(":
            raise _SelectorSyntaxError(f"found '{opening}' expected: '('")
        if self._next != ")" and (not self._next or self._next in _SYMBOLS - {","}):
            raise _SelectorSyntaxError(f"found '{self._next}', expected: ',', ')' or identifier")
        values = [""] if self._next in {")", ","} else []
        while (word := self._taken()) != ")":
            if word == ",":
                values += [""] if self._next in {")", ","} else []
            elif not word or word in _SYMBOLS:
                raise _SelectorSyntaxError(f"found '{word}', expected: ',', or identifier")
            else:
                values.append(word)
                if self._next not in {",", ")"}:
                    raise _SelectorSyntaxError(f"found '{self._next}', expected: ',' or ')'")
        return values

    @staticmethod
    def _check_values(key: str, operator: str, values: list[str]) -> None:
        if operator in {"<", ">"} and not _WHOLE.match(values[0]):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _SelectorSyntaxError(str(invalid("values[0]", values[0], why)))
        faults = [
            str(invalid(f"values[{index}][{key}]", value, "; ".join(said)))
            for index, value in enumerate(values)
            if (said := LABEL_VALUE.faults(value))
        ]
        if faults:
            raise _SelectorSyntaxError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


class _Labelled(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _LabelsHead(msgspec.Struct, gc=False):
    metadata: _Labelled


class _NameAndNamespace(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""


_head = msgspec.json.Decoder(_LabelsHead)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_named = msgspec.json.Decoder(_NameAndNamespace)


class Selection(msgspec.Struct, frozen=True):
    """A label selector and a field selector; both must match."""

    resource: ResourceType
    labels: Labels
    fields: Fields

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    @property
    def is_of_version(self) -> bool:
        """Whether it asks for fields that objects may not have as they are stored, but in the version asked for."""
        return self.resource.convert is not None and any(each.path not in _ALWAYS for each in self.fields.requirements)

    async def as_asked(self, stored: Sequence[Stored]) -> list[bytes]:
        """The objects as `matches` has to look at them."""
        return await seen_all(self.resource, stored) if self.is_of_version else [each.value for each in stored]

    def matches(self, stored: bytes) -> bool:
        """Whether the object in these bytes is meant; only as much of it is decoded as has to be looked at."""
        if self.labels and not self.labels.matches(_head.decode(stored).metadata.labels):
            return False
        return not self.fields or self._fields_match(_selected_by(self.resource.strategy.selectable_fields, stored))

    def _fields_match(self, known: Mapping[str, str]) -> bool:
        return self.fields.matches(lambda path: known.get(path, ""))


@lru_cache(_VERSIONS_KEPT)
def _selected_by(fields_of: Callable[[Json], Mapping[str, str]], stored: bytes) -> Mapping[str, str]:
    """What field selectors find in an object. A watch asks of each version twice, as what comes and as what goes, and
    several watches ask of the same. Of the metadata, which is the larger half, only names can be selected by.
    """
    members = _members.decode(stored)
    metadata = _named.decode(members.pop("metadata"))
    value: Json = {name: msgspec.json.decode(member) for name, member in members.items()}
    return {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        **fields_of({**value, "metadata": {}}),
    }


class RequestSelectors(NamedTuple):
    """The selectors of a request."""

    labels: Labels
    fields: Fields


def selectors_of(request: ApiRequest) -> RequestSelectors:
    """Returns the selectors of a request; refuses with 400 what is none, whatever it is to select."""
    text = request.parameter("labelSelector")
    try:
        labels = Labels(text)
    except InvalidValueError as error:
        raise bad_request(label_selector_fault(text) or f"unable to parse requirement: {error}") from None
    text = request.parameter("fieldSelector")
    try:
        return RequestSelectors(labels, Fields(text))
    except InvalidValueError as error:
        raise bad_request(field_selector_fault(text) or str(error)) from None


def selection_of(selectors: RequestSelectors, resource: ResourceType) -> Selection:
    """What they select of a resource; refuses with 400 fields that cannot be selected by."""
    labels, fields = selectors
    known = _selectable(resource) if fields else _ALWAYS
    for requirement in fields.requirements:
        if requirement.path not in known:
            raise bad_request(_unselectable(requirement.path, resource))
    return Selection(resource, labels, fields)


def _selectable(resource: ResourceType) -> frozenset[str]:
    own = frozenset(resource.strategy.selectable_fields(_EMPTY))
    return own | (_ALWAYS if resource.selects_namespace else frozenset({"metadata.name"}))


def _unselectable(path: str, resource: ResourceType) -> str:
    if resource.unknown_field_label:
        return resource.unknown_field_label.replace("{path}", path)
    if not resource.is_custom and _selectable(resource) == _ALWAYS:
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {path}"
