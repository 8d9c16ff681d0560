"""The files of generated classes on disk. A digest in the heading of each shows whether somebody has edited it."""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from navarch.errors import ConfigError
from navarch.project.files import read_text, write_files
from navarch.project.generated_files import GenerateReport
from navarch.project.models.crds import KindVersion
from navarch.project.models.expressions import WIDTH
from navarch.project.models.modules import module_path, modules

_COMMAND: Final = "# Written by `navarch generate models`"
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_PACKAGE: Final = "__init__.py"


def model_files(kinds: Iterable[KindVersion]) -> dict[str, str]:
    """Returns the files of the kinds by path, each with its heading. The same kinds have the same bytes.

    Raises `ConfigError` if there are no kinds.
    """
    known = list(kinds)
    if not known:
        raise ConfigError("expected kinds to generate classes of, got none; give files with CRDs, or names of CRDs")
    sources: dict[str, set[str]] = {}
    for each in known:
        sources.setdefault(module_path(each), set()).add(each.source)
    return {
        path: content if path.endswith(_PACKAGE) else _with_heading(content, sources[path])
        for path, content in modules(known).items()
    }


def plan_models(folder: Path, files: Mapping[str, str]) -> GenerateReport:
    """Compares the wanted files with those in the folder, and changes nothing.

    A package that has an `__init__.py` keeps it. Raises `ConfigError` if a module would lose kinds: somebody has
    generated it from more CRDs.
    """
    written, unchanged, edited = [], [], []
    for path, content in files.items():
        found = read_text(folder / path)
        if found == content or (found is not None and path.endswith(_PACKAGE)):
            unchanged.append(path)
        elif found is not None and not is_as_written(found):
            edited.append(path)
        else:
            written.append(path)
            _refuse_losses(folder / path, found or "", content)
    return GenerateReport(written=sorted(written), unchanged=sorted(unchanged), removed=[], edited=sorted(edited))


def write_models(folder: Path, files: Mapping[str, str]) -> GenerateReport:
    """Writes the files that differ, and leaves edited ones alone."""
    report = plan_models(folder, files)
    write_files(folder, {path: files[path] for path in report.written})
    return report


def is_as_written(content: str) -> bool:
    """Returns True for a generated file that nobody has edited."""
    heading, body = _split(content)
    digest = _DIGEST.search(heading)
    return heading.startswith(_COMMAND) and digest is not None and digest[1] == _digest_of(body)


def _with_heading(body: str, sources: Iterable[str]) -> str:
    line = f"{_COMMAND} from {', '.join(sorted(sources))}. Do not edit it: run the command again."
    lines = textwrap.wrap(line, WIDTH, subsequent_indent="# ", break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, f"# sha256:{_digest_of(body)}", body])


def _split(content: str) -> tuple[str, str]:
    lines = content.splitlines(keepends=True)
    count = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])


def _digest_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _refuse_losses(file: Path, before: str, after: str) -> None:
    lost = sorted(set(_kinds_in(before)) - set(_kinds_in(after)))
    if lost:
        raise ConfigError(
            f"{file}: expected the CRDs of all kinds that it has, got none of {', '.join(lost)}; give them together with the "
            f"others, or remove the file"
        )


def _kinds_in(content: str) -> Iterator[str]:
    for statement in ast.parse(content).body:
        if isinstance(statement, ast.ClassDef) and any(ast.unparse(base) == "Object" for base in statement.bases):
            yield statement.name
