"""Requests of a sequence, written so that two servers can be asked the same.

What a server makes up is named, and filled in for each server from its own answers: `$ns` is the sequence's namespace,
`$rv`, `$old` and `$uid` the last version, the one before it and the uid of the object that the step is about, `$listed`
and `$continue` the version and the token of the last list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

Json = dict[str, Any]

JSON = "application/json"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
OWN = ("labelSelector", "sequence=$ns")
"""The parameter with which only the sequence's own objects of a cluster-wide kind are meant."""
NAMES = ("$ns", "$rv", "$old", "$uid", "$listed", "$continue")


@dataclass(frozen=True)
class Step:
    """One request; `raw` is a body that no JSON value makes: twice the same name, rubbish."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    raw: str = ""
    media_type: str = JSON
    accept: str = JSON
    impersonating: tuple[tuple[str, str], ...] = ()
    """The headers that say in whose name it is asked."""

    @property
    def text(self) -> str:
        """The body as it is sent, but for what is named."""
        return self.raw or ("" if self.body is None else json.dumps(self.body, ensure_ascii=False))

    def __str__(self) -> str:
        query = f"?{urlencode(self.query, safe='$=,:()!')}" if self.query else ""
        kind = next((name for name, media_type in PATCHES.items() if media_type == self.media_type), "")
        who = ", ".join(f"{name}: {value}" for name, value in self.impersonating)
        marks = [each for each in (kind, "" if self.accept == JSON else self.accept, who) if each]
        shown = f" ({'; '.join(marks)})" if marks else ""
        return f"{self.method} {self.path}{query}{shown} {self.text}".rstrip()


def filled(text: str, known: dict[str, str]) -> str:
    """The text with what one server says in the place of the names."""
    for name in NAMES:
        text = text.replace(name, known[name]) if name in text else text
    return text


@dataclass(frozen=True)
class Difference:
    """Where two answers differ first; `step` is an index."""

    step: int
    where: str
    embedded: Any
    real: Any

    def __str__(self) -> str:
        shown = (json.dumps(each, ensure_ascii=False, default=str) for each in (self.embedded, self.real))
        return f"step {self.step}, {self.where}\n  embedded: {next(shown)}\n  real:     {next(shown)}"


class _Missing:
    """In the place of a value that one side does not have."""

    def __str__(self) -> str:
        return "(nothing)"


MISSING = _Missing()


def differences(embedded: Any, real: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place at which two values differ, and both values there."""
    if isinstance(embedded, dict) and isinstance(real, dict):
        for name in sorted(embedded.keys() | real.keys()):
            path = f"{where}.{name}" if where else name
            yield from differences(embedded.get(name, MISSING), real.get(name, MISSING), path)
    elif isinstance(embedded, list) and isinstance(real, list) and len(embedded) == len(real):
        for index, (one, other) in enumerate(zip(embedded, real, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif embedded != real or type(embedded) is not type(real):
        yield where, embedded, real
