"""What must not be shown, taken out of text that will be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from navarch.client.config.model import MASK

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
    """The text without the secrets given, and without whatever looks like one."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(_masked, text)
    return text


def printable(text: str) -> str:
    r"""The text without what would steer a terminal; as kubectl shows words that are not its own.

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
    """The values whose names say that they are secret."""
    return [value for name, value in names.items() if _TELLING.search(name)]


def telling_arguments(arguments: Sequence[str]) -> list[str]:
    """The values of arguments such as `--token=abc` and `--password abc`."""
    values: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.partition("=")
        if name.startswith("-") and _TELLING.search(name):
            values.append(value if equals else following)
    return values
