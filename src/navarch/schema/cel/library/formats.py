"""Named formats: `format.dns1123Label().validate(self.name)` returns the faults, or nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from navarch.api.names import DNS_1035_LABEL, DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, NameRule
from navarch.schema.cel import types
from navarch.schema.cel.library.network import is_url
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import NONE, Optional, some

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
    longest_pattern: int = field(compare=False)
    """The length of the regular expression as the API server counts it; the cost of `validate` is a multiple of it."""


def _prefix_faults(rule: NameRule) -> Callable[[str], list[str]]:
    """Those of a name that will be continued, so it may end with a dash; the server looks past two characters."""
    return lambda text: rule.faults(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


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


_FAULTS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": DNS_LABEL.faults,
    "dns1123Subdomain": DNS_SUBDOMAIN.faults,
    "dns1035Label": DNS_1035_LABEL.faults,
    "qualifiedName": LABEL_KEY.faults,
    "dns1123LabelPrefix": _prefix_faults(DNS_LABEL),
    "dns1123SubdomainPrefix": _prefix_faults(DNS_SUBDOMAIN),
    "dns1035LabelPrefix": _prefix_faults(DNS_1035_LABEL),
    "labelValue": LABEL_VALUE.faults,
    "uri": _test(is_url, "URI"),
    "uuid": _test(lambda text: _UUID.match(text) is not None, "UUID"),
    "byte": _test(_is_base64, "base64"),
    "date": _test(is_date, "date"),
    "datetime": _test(_is_date_time, "date and time"),
}
_PATTERNS = {
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uri": 1103,
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}
_FORMATS = {name: NamedFormat(name, faults, _PATTERNS.get(name, 30)) for name, faults in _FAULTS.items()}


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
