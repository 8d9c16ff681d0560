"""Masks secrets in text and structs that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

_TELLING = re.compile(r"token|secret|passw|credential|api_?-?key|access_?-?key|private_?-?key", re.IGNORECASE)
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"(?i)(?<=basic )[a-z0-9+/=]{8,}"),
    re.compile(r"""(?ix)(?:[\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key)[\w-]*)["']?\s*[=:]\s*["']?
                   (?P<value>[^\s"',;]+)"""),
    re.compile(r"[A-Za-z0-9_+/=-]{32,}(?:\.[A-Za-z0-9_+/=-]+)*"),
    re.compile(r"eyJ[A-Za-z0-9_.=-]+"),
)
# Shorter values would be found inside ordinary words and numbers, and make the text unreadable.
_SHORTEST = 4


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Returns the text without the given secrets, and without text that looks like one."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(_masked, text)
    return text


def printable(text: str) -> str:
    r"""Returns the text with terminal control characters escaped, as kubectl shows foreign text.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _masked(match: re.Match[str]) -> str:
    if "value" not in match.re.groupindex:
        return MASK
    start = match.start("value") - match.start()
    return match.group()[:start] + MASK


def telling(names: Mapping[str, str]) -> list[str]:
    """Returns the values whose names mark them as secret."""
    return [value for name, value in names.items() if _TELLING.search(name)]


def telling_arguments(arguments: Sequence[str]) -> list[str]:
    """Returns the values of arguments such as `--token=abc` and `--password abc`."""
    values: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.partition("=")
        if name.startswith("-") and _TELLING.search(name):
            values.append(value if equals else following)
    return values


MASK = "***"


_SECRET = frozenset({"token", "password", "client_key_data", "args", "env"})


_BULKY = frozenset({"ca_data", "client_certificate_data", "cluster_extension"})


_URLS = frozenset({"server", "proxy_url"})


class MaskedStruct(msgspec.Struct, frozen=True, kw_only=True):
    """A struct whose repr masks secrets and omits empty fields."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, _shown(name, value)) for name, value in values if value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


def _shown(name: str, value: Any) -> Any:
    if name in _SECRET:
        return MASK
    if name in _BULKY:
        return f"{len(value)} bytes"
    return without_password(value) if name in _URLS else value


def without_password(url: str) -> str:
    """Returns a URL with its user masked; only the mask for a malformed one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if "@" not in url:
        return url
    return parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}").geturl() if parts.netloc else MASK
