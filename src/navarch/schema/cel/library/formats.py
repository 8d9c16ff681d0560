"""Named formats: `format.dns1123Label().validate(self.name)` gives what is wrong, or nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import ClassVar

from navarch.schema.cel import types
from navarch.schema.cel.library.urls import is_url
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import NONE, Optional, some

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(rf"{_LABEL}\Z")
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_DNS_1035_LABEL = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z")
_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    cel_type: ClassVar[CelType] = types.NAMED_FORMAT
    name: str
    faults: Callable[[str], list[str]] = field(compare=False)


def _name_faults(text: str, pattern: re.Pattern[str], longest: int, what: str, *, prefix: bool = False) -> list[str]:
    """A prefix may end with a dash, as it will be continued."""
    tested = text[:-1] + "a" if prefix and text.endswith("-") else text
    faults = [] if pattern.match(tested) else [f"{text!r} is no {what}"]
    return [f"must be at most {longest} characters long", *faults] if len(text) > longest else faults


def _qualified_name_faults(text: str) -> list[str]:
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        return [f"{text!r} is no qualified name: it has more than one slash"]
    faults = [] if prefixes != [""] else ["the prefix before the slash must not be empty"]
    if prefixes and prefixes[0]:
        faults += _name_faults(prefixes[0], _DNS_SUBDOMAIN, 253, "DNS subdomain")
    if not name:
        faults.append("the name must not be empty")
    return faults + _name_faults(name, _NAME, 63, "name of letters, digits, '-', '_' and '.'")


def _label_value_faults(text: str) -> list[str]:
    return _name_faults(text, _NAME, 63, "label value of letters, digits, '-', '_' and '.'") if text else []


def is_date(text: str) -> bool:
    if _DATE.match(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.match(text)
    return match is not None and is_date(match[1])


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return bool(text)


def _test(holds: Callable[[str], bool], what: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [f"{text!r} is no {what}"]


_names = partial(partial, _name_faults)
_FAULTS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _names(pattern=_DNS_LABEL, longest=63, what="DNS label"),
    "dns1123Subdomain": _names(pattern=_DNS_SUBDOMAIN, longest=253, what="DNS subdomain"),
    "dns1035Label": _names(pattern=_DNS_1035_LABEL, longest=63, what="DNS-1035 label"),
    "qualifiedName": _qualified_name_faults,
    "dns1123LabelPrefix": _names(pattern=_DNS_LABEL, longest=63, what="DNS label", prefix=True),
    "dns1123SubdomainPrefix": _names(pattern=_DNS_SUBDOMAIN, longest=253, what="DNS subdomain", prefix=True),
    "dns1035LabelPrefix": _names(pattern=_DNS_1035_LABEL, longest=63, what="DNS-1035 label", prefix=True),
    "labelValue": _label_value_faults,
    "uri": _test(is_url, "URI"),
    "uuid": _test(lambda text: _UUID.match(text) is not None, "UUID"),
    "byte": _test(_is_base64, "base64"),
    "date": _test(is_date, "date"),
    "datetime": _test(_is_date_time, "date and time"),
}
_FORMATS = {name: NamedFormat(name, faults) for name, faults in _FAULTS.items()}


def _validate(named: NamedFormat, text: str) -> Optional:
    faults = named.faults(text)
    return some(faults) if faults else NONE


def _named(name: str) -> Optional:
    return some(_FORMATS[name]) if name in _FORMATS else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


OVERLOADS = [
    function("format.named", "string -> optional(format)", _named),
    method("validate", "format, string -> optional(list(string))", _validate),
    *(function(f"format.{name}", "-> format", _constant(named)) for name, named in _FORMATS.items()),
]
