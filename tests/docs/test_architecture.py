"""docs/designs/architecture.md: the map names what exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from watch_walk import walked_files

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "designs" / "architecture.md"
_NAMED = re.compile(r"`((?:src|operators|tests|scripts)/[\w/.-]+)(?::([\w.]+))?`")


def named() -> list[tuple[str, str]]:
    """The files and folders on the page, each with the function or class after its colon."""
    return sorted(set(_NAMED.findall(PAGE.read_text())))


def definitions(path: Path) -> set[str]:
    """The classes, functions and methods of a module: `Watch`, `Watch.close`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
            members = node.body if isinstance(node, ast.ClassDef) else []
            found |= {
                f"{node.name}.{each.name}"
                for each in members
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            }
    return found


@pytest.mark.parametrize(("path", "name"), named(), ids=lambda value: value.replace("/", "."))
def test_place_on_the_map_exists(path: str, name: str) -> None:
    """A file that moves, or a function that is renamed, moves on the page too."""
    place = ROOT / path
    assert place.exists(), f"expected {path} of docs/designs/architecture.md to exist; write its new place there"
    if name:
        known = definitions(place)
        assert name in known, f"expected {name} in {path}, got {sorted(known)}; write its new name on the page"


def test_map_names_three_walks() -> None:
    """Each walk is a list of places: the page cannot pass by naming nothing."""
    walks = PAGE.read_text().split("## Walk ")[1:]
    assert [len(_NAMED.findall(walk.partition("## Where")[0])) > 6 for walk in walks] == [True, True, True]


async def test_watch_event_passes_at_most_fifteen_files() -> None:
    """From the answer of the API server to the reconciler; a new file on the way takes the place of another."""
    files = await walked_files()
    assert len(files) <= 15, files
    assert {"client/watch.py", "cache/informer.py", "queue/queue.py", "controller/reconciliation.py"} <= set(files)
