"""Generated files: they follow from the code, are never edited by hand, and an edited one is never overwritten.

`.navarch/generated.json` has the digest of each file as it was written last. A file that differs from its digest was
edited, or never was ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ConfigError
from navarch.project.files import read_text, remove_files, write_files
from navarch.project.project import STATE_FOLDER

RECORD: Final = f"{STATE_FOLDER}/generated.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateReport:
    """What became of the generated files, by path; each list is sorted."""

    written: list[str]
    """New, or changed since they were written last."""
    unchanged: list[str]
    removed: list[str]
    """No longer wanted."""
    edited: list[str]
    """Differ from what was written last: they are left alone."""


def plan_generated(root: Path, files: Mapping[str, str], *, part: str) -> GenerateReport:
    """Compares the wanted files with those on disk, and changes nothing.

    `part` names the generator, such as `chart`: files that it wrote before and that are not in `files` are removed.
    """
    record = _record(root)
    before = record.get(part, {})
    written, unchanged, edited = [], [], []
    for path, content in files.items():
        found = read_text(root / path)
        if found == content:
            unchanged.append(path)
        elif found is None or _digest(found) == before.get(path):
            written.append(path)
        else:
            edited.append(path)
    removed: list[str] = []
    for path, digest in before.items():
        found = None if path in files else read_text(root / path)
        if found is not None:
            (removed if _digest(found) == digest else edited).append(path)
    return GenerateReport(
        written=sorted(written), unchanged=sorted(unchanged), removed=sorted(removed), edited=sorted(edited)
    )


def write_generated(root: Path, files: Mapping[str, str], *, part: str) -> GenerateReport:
    """Writes the wanted files, removes those that are no longer wanted, and leaves edited ones alone."""
    report = plan_generated(root, files, part=part)
    record = _record(root)
    before = record.get(part, {})
    kept = {path: before[path] for path in report.edited if path in before}
    fresh = {path: _digest(content) for path, content in files.items() if path not in report.edited}
    # The record goes last: after an interruption a file has its old digest, or the content that is wanted.
    write_files(root, {path: files[path] for path in files if path in report.written})
    remove_files(root, report.removed)
    record[part] = dict(sorted({**kept, **fresh}.items()))
    content = msgspec.json.format(msgspec.json.encode(dict(sorted(record.items()))), indent=2).decode()
    write_files(root, {RECORD: content + "\n"})
    return report


def _record(root: Path) -> dict[str, dict[str, str]]:
    text = read_text(root / RECORD)
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, dict[str, str]])
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{RECORD}: expected the digests of generated files, got something else: {error}; restore it from version control"
        ) from None


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
