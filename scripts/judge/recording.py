"""`Recording`: questions to one referee, and the files that hold its verdicts."""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from judge.referees import Referee
from kubernetes_api.files import render

Verdicts = Mapping[str, Any]
"""By the name of their file: values of JSON, or the text of a page."""

T = TypeVar("T")


def _as_they_are(_: str, verdicts: Any) -> Any:
    return verdicts


@dataclass(frozen=True)
class Recording(Generic[T]):
    """What one referee was asked, and what it said.

    `ask` puts every question and returns the verdicts by file of `folder`, always for the same `files`. Two verdicts are the
    same if `steady` makes the same of them: it is given the name of a file and its content, and removes uids, times and
    whatever else differs from run to run. A file that ends in `.json` or `.json.gz` has JSON, any other one is text.
    """

    name: str
    referee: Referee[T]
    folder: Path
    files: tuple[str, ...]
    ask: Callable[[T], Verdicts]
    steady: Callable[[str, Any], Any] = _as_they_are

    def asked(self) -> dict[str, bytes]:
        """Returns the content that each file has if the referee is asked now."""
        with self.referee.running() as referee:
            found = self.ask(referee)
        if set(found) != set(self.files):
            raise ValueError(f"{self.name}: expected verdicts for {sorted(self.files)}, got {sorted(found)}")
        return {name: _encoded(name, found[name]) for name in self.files}

    def changes(self, asked: Mapping[str, bytes]) -> dict[str, str]:
        """Returns a diff for each file whose verdicts have changed."""
        found = {name: self._difference(name, content) for name, content in asked.items()}
        return {name: text for name, text in found.items() if text}

    def _difference(self, name: str, content: bytes) -> str:
        path = self.folder / name
        old = self._lines(name, path.read_bytes()) if path.exists() else []
        new = self._lines(name, content)
        return "\n".join(difflib.unified_diff(old, new, f"{name} as recorded", f"{name} now", lineterm="", n=2))

    def _lines(self, name: str, content: bytes) -> list[str]:
        steady = self.steady(name, _decoded(name, content))
        return (steady if isinstance(steady, str) else render(steady)).splitlines()

    def write(self, asked: Mapping[str, bytes], names: Mapping[str, object]) -> None:
        """Writes the named files. Those whose verdicts are the same keep their old uids and times."""
        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(asked[name])


def _encoded(name: str, verdicts: Any) -> bytes:
    if name.endswith(".json.gz"):
        return gzip.compress(json.dumps(verdicts, sort_keys=True).encode(), mtime=0)
    text: str = render(verdicts) if name.endswith(".json") else verdicts
    return text.encode()


def _decoded(name: str, content: bytes) -> Any:
    if name.endswith(".json.gz"):
        return json.loads(gzip.decompress(content))
    return json.loads(content) if name.endswith(".json") else content.decode()
