"""The judge: recorded verdicts are compared with those of a referee, and written only if they have changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from judge import Recording, Referee, Verdicts, without_chance
from judge.catalog import recordings
from judge.cli import main

ROOT = Path(__file__).parents[2]


def recording(folder: Path, ask: Callable[[int], Verdicts], *files: str) -> Recording[int]:
    """Questions to somebody who is the number 7."""
    return Recording(
        "sums",
        Referee("the number", lambda: nullcontext(7)),
        folder,
        files or ("sums.json",),
        ask,
        lambda _, found: without_chance(found),
    )


def judged(known: Recording[Any], *arguments: str) -> int:
    return main([*arguments], {known.name: known})


def sums(number: int) -> Verdicts:
    return {"sums.json": [number, {"resourceVersion": str(id(object()))}]}


def test_verdicts_are_recorded_and_then_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--record` nothing is written; the referee itself is asked."""
    known = recording(tmp_path, sums)
    assert judged(known) == 1
    assert not list(tmp_path.iterdir())
    assert judged(known, "--record") == 0
    assert json.loads((tmp_path / "sums.json").read_text())[0] == 7
    assert judged(known) == 0
    assert "sums: the number says what was recorded" in capsys.readouterr().out


def test_verdict_that_has_changed_is_shown_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a diff; the exit code is 1, and the file is as it was."""
    known = recording(tmp_path, sums)
    (tmp_path / "sums.json").write_text('[8, {"resourceVersion": "1"}]')
    assert judged(known, "sums") == 1
    said = capsys.readouterr().out
    assert "-[8, {" in said
    assert "+[7, {" in said
    assert "make judge NAME=sums RECORD=1" in said
    assert (tmp_path / "sums.json").read_text().startswith("[8")


def test_file_whose_verdicts_are_the_same_is_not_written(tmp_path: Path) -> None:
    """Times and versions of another run would be noise in its history."""
    known = recording(
        tmp_path, lambda number: {**sums(number), "other.json": {"found": number}}, "sums.json", "other.json"
    )
    (tmp_path / "sums.json").write_text('[7, {"resourceVersion": "1"}]')
    assert judged(known, "--record") == 0
    assert (tmp_path / "sums.json").read_text() == '[7, {"resourceVersion": "1"}]'
    assert json.loads((tmp_path / "other.json").read_text()) == {"found": 7}


@pytest.mark.parametrize("name", ["page.md", "packed.json.gz"])
def test_text_and_packed_json_are_recorded_too(tmp_path: Path, name: str) -> None:
    """By the end of the file's name."""
    known = recording(tmp_path, lambda number: {name: f"{number}"}, name)
    assert judged(known, "--record") == 0
    assert judged(known) == 0
    assert judged(recording(tmp_path, lambda number: {name: f"{number + 1}"}, name)) == 1


def test_versions_in_patches_are_chance_too() -> None:
    """Whoever tests or replaces the resourceVersion in a JSON patch has another one in each run."""
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/a", "value": "7"},
    ]
    assert [each["value"] for each in without_chance(patch)] == ["<version>", "7"]


def test_referee_that_cannot_be_asked_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are asked all the same."""

    def ask(_: int) -> Verdicts:
        raise RuntimeError("it sleeps")

    assert judged(recording(tmp_path, ask)) == 1
    assert capsys.readouterr().err == "sums: the number could not be asked: it sleeps\n"


def test_unknown_name_is_told_with_those_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anybody is asked."""
    assert judged(recording(tmp_path, sums), "products") == 2
    assert capsys.readouterr().err == "judge: expected names among sums; got products\n"


def test_verdicts_for_other_files_are_an_error(tmp_path: Path) -> None:
    """A file that is declared and not asked about would be stale without a word."""
    with pytest.raises(ValueError, match=r"expected verdicts for \['other.json'\], got \['sums.json'\]"):
        recording(tmp_path, sums, "other.json").asked()


def test_every_file_of_verdicts_has_one_recording() -> None:
    """Each file beside tests that has answers of others is asked for by `make judge`, and there."""
    declared = [each.folder / name for each in recordings().values() for name in each.files]
    assert sorted(declared) == sorted(set(declared))
    assert [path for path in declared if not path.exists()] == []
    beside_tests = {*ROOT.glob("tests/**/data/*.json"), *ROOT.glob("tests/**/*.json.gz")}
    assert beside_tests <= set(declared)
