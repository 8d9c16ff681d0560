"""The string formats that the API server checks; other formats are documentation."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import unicodedata
from collections.abc import Callable

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.api.strconv import parse_int64
from navarch.schema.cel.values import counted_units
from navarch.schema.values.addresses import is_email, is_uri

Check = Callable[[str], bool]


def format_check(name: str) -> Check | None:
    """Returns the check of a format; None if the server ignores it. Dashes do not matter, as in `date-time`."""
    return _CHECKS.get(name.replace("-", ""))


def is_known_format(json_type: str | None, name: str) -> bool:
    """Returns True if the server knows the format for values of that type."""
    if json_type == "integer":
        return name in {"int32", "int64"}
    if json_type == "number":
        return name in {"float", "double"}
    return json_type in {None, "string"} and name.replace("-", "") in _CHECKS


def _matches(pattern: str, flags: int = 0) -> Check:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


_LONGEST_HOST = 255
_HEX4 = "[0-9a-f]{4}"
_NODE = "[0-9a-f]{12}"
_DIGITS = re.compile(r"[^0-9]+")
_CREDIT_CARD = _matches(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35\d{3})\d{11}"
)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_GO_DURATION = _matches(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_UNITS = {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"}
_UNIT_STARTS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_HOST = re.compile(r"[ads](-?[ads]{0,62})?|([ads]([ads-]{0,61}[ads])?\.)+a{2,63}")
"""A host name in which each letter is written as `a`, each symbol as `s` and each digit as `d`."""


def _is_uuid(version: str, variant: str) -> Check:
    return _matches(rf"[0-9a-f]{{8}}-?{_HEX4}-?{version}-?{variant}-?{_NODE}", re.IGNORECASE)


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return False
    try:
        dt.date.fromisoformat("2000" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    date, separator, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.split("t")[0]) if separator and _is_date(date) else None
    return time is not None and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION(text):
        return True
    return any(unit in _UNITS or unit.startswith(_UNIT_STARTS) for _, unit in counted_units(text))


def _is_octet(text: str) -> bool:
    number = parse_int64(text) if text.isdecimal() else None
    return number is not None and number <= 255


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    if ":" in text:
        return "." in text and _is_ipv6(text)
    return len(parts) == 4 and all(_is_octet(part) for part in parts)


def _is_ipv6(text: str) -> bool:
    try:
        return ":" in text and "%" not in text and ipaddress.IPv6Address(text) is not None
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, separator, length = text.rpartition("/")
    if not separator or not re.fullmatch(r"[0-9]{1,3}", length):
        return False
    return (_is_ipv6(address) and int(length) <= 128) or (_is_ipv4(address) and int(length) <= 32)


def _is_mac(text: str) -> bool:
    pair, quad = "[0-9a-fA-F]{2}", "[0-9a-fA-F]{4}"
    forms = [rf"{pair}({mark}{pair}){{{count}}}" for mark in ":-" for count in (5, 7, 19)]
    forms += [rf"{quad}(\.{quad}){{{count}}}" for count in (2, 3, 9)]
    forms += [rf"({pair}){{{count}}}" for count in (6, 8, 20)]
    return any(re.fullmatch(form, text) for form in forms)


def _is_text(text: str) -> bool:
    """Whether it has no half of a pair of surrogates, which JSON can write, but no other text has."""
    return not any("\ud800" <= character <= "\udfff" for character in text[:_LONGEST_HOST])


def _is_hostname(text: str) -> bool:
    if len(text) > _LONGEST_HOST or not _is_text(text):
        return False
    short = len(text.encode()) <= 255 and all(len(label.encode()) <= 63 for label in text.split("."))
    return short and _HOST.fullmatch("".join(map(_host_class, text))) is not None


def _host_class(character: str) -> str:
    if character in "-." or character in "0123456789":
        return "d" if character.isdigit() else character
    return {"L": "a", "S": "s"}.get(unicodedata.category(character)[0], "x")


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = _DIGITS.sub("", text)
    if not _CREDIT_CARD(digits):
        return False
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


_CHECKS: dict[str, Check] = {
    "bsonobjectid": _matches("[0-9a-f]{24}", re.IGNORECASE),
    "uri": is_uri,
    "email": is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _is_uuid(_HEX4, _HEX4),
    "uuid3": _is_uuid("3[0-9a-f]{3}", _HEX4),
    "uuid4": _is_uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _is_uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "byte": _matches(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": DNS_LABEL.allows,
    "k8slongname": DNS_SUBDOMAIN.allows,
}
