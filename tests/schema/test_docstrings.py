"""Descriptions read from the source of a class."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from navarch.api import Model
from navarch.schema.generation import docstrings
from navarch.schema.generation.docstrings import class_description, field_descriptions, shortened


class Base(Model):
    """The base."""

    size: int = 1
    """How large."""
    plain: int = 1


class Derived(Base):
    colour: str = ""
    """Which colour.

    In several paragraphs.
    """
    size: int = 2
    """How large now."""


def test_fields_are_described_by_the_string_after_them() -> None:
    """Inherited fields too; a field that is declared again is described again."""
    assert field_descriptions(Derived) == {
        "size": "How large now.",
        "colour": "Which colour.\n\nIn several paragraphs.",
    }
    assert field_descriptions(Base) == {"size": "How large."}


def test_a_class_does_not_inherit_what_is_said_of_its_base() -> None:
    """A spec is not described as "What is wanted"."""
    assert (class_description(Base), class_description(Derived)) == ("The base.", "")


def test_classes_inside_functions_are_found() -> None:
    """Each by its qualified name."""

    class Local(Model):
        value: int = 1
        """Said inside a function."""

    assert field_descriptions(Local) == {"value": "Said inside a function."}


def test_a_class_without_source_has_no_descriptions() -> None:
    """And nothing else is lost."""
    names: dict[str, Any] = {"Model": Model, "__name__": "nowhere"}
    exec("class Made(Model):\n    value: int = 1\n    'never seen'", names)
    assert field_descriptions(names["Made"]) == {}


def test_a_description_is_cut_between_words() -> None:
    """At most as many characters as asked for."""
    assert shortened("One two three", None) == "One two three"
    assert shortened("One two three", 13) == "One two three"
    assert shortened("One two three", 9) == "One two…"
    assert shortened("Onetwothree", 4) == "One…"
    assert shortened("One", 0) == ""


def test_class_typed_at_a_prompt_has_no_descriptions_and_no_trouble() -> None:
    """Its module has no file to read the source from."""
    program = """
from navarch import Resource, Spec, Status
from navarch.schema import crd
class CacheSpec(Spec):
    size: int = 1
class Cache(Resource[CacheSpec, Status], group="example.com", version="v1"): ...
print(crd(Cache)["metadata"]["name"])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("caches.example.com\n", "")


@pytest.mark.parametrize("flags", [[], ["-OO"]], ids=["plain", "without docstrings"])
def test_descriptions_are_found_in_an_archive_and_without_docstrings(tmp_path: Path, flags: list[str]) -> None:
    """An application in one file, or run with -OO, makes the same CRD."""
    program = '''
from navarch.api import Model
from navarch.schema.generation import docstrings
from navarch.schema.generation.docstrings import class_description, field_descriptions
class Cache(Model):
    """Said of the class."""
    size: int = 1
    """Said of the field."""
print(class_description(Cache), field_descriptions(Cache))
'''
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("kinds.py", program)
    command = [sys.executable, *flags, "-c", "import kinds"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "archive.zip")}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (ran.stdout, ran.stderr) == ("Said of the class. {'size': 'Said of the field.'}\n", "")


class _Parsing:
    """A piece of garbage: a cycle whose finalizer parses, as a traceback of an ignored exception does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("a = 1")
        _Parsing()  # the next collection finds one, too


def test_finalizers_that_parse_do_not_disturb_the_parse() -> None:
    """Python before 3.11.8 raises SystemError where a collection during a parse runs one."""
    threshold = gc.get_threshold()
    docstrings._definitions.cache_clear()
    gc.set_threshold(1)
    try:
        _Parsing()
        assert field_descriptions(Base) == {"size": "How large."}
        assert gc.isenabled()
    finally:
        gc.set_threshold(*threshold)
        _Parsing.__del__ = lambda _: None  # type: ignore[method-assign]
        gc.collect()


def test_a_parse_that_a_finalizer_disturbed_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may have turned the collection on again; and it stays off where somebody else turned it off."""
    parse, failures = ast.parse, ["AST constructor recursion depth mismatch (before=234, after=253)"]

    def disturbed(*given: Any, **named: Any) -> Any:
        if named.get("filename") == __file__ and failures:
            raise SystemError(failures.pop())
        return parse(*given, **named)

    docstrings._definitions.cache_clear()
    monkeypatch.setattr(ast, "parse", disturbed)
    gc.disable()
    try:
        assert field_descriptions(Base) == {"size": "How large."}
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert not failures
