"""Compiles Python code with the interpreter that will run it."""

from __future__ import annotations

import marshal
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.project.image.base import BasePython
from navarch.project.image.targets import host_platform

_LOADER: Final = re.compile(rb"/lib(?:64)?/ld-linux[a-z0-9_.-]*\.so\.\d")
_LIBRARY_FOLDERS: Final = ("usr/local/lib", "lib/{}-linux-gnu", "usr/lib/{}-linux-gnu", "lib64", "usr/lib64", "usr/lib")
_FILES_PER_PROCESS: Final = 200
_SECONDS: Final = 600.0

# Reads paths and sources, writes bytecode with unchecked hashes; None for a file that does not compile, such as a template.
_PROGRAM: Final = """
import importlib.util, marshal, sys
found = []
for path, source in marshal.loads(sys.stdin.buffer.read()):
    try:
        code = compile(source, path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        found.append(None)
        continue
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    found.append(head + marshal.dumps(code))
sys.stdout.buffer.write(marshal.dumps(found, 2))
"""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A Python that compiles for images; bytecode depends on its version, and not on the machine."""

    argv: tuple[str, ...]
    home: str = ""
    """The prefix of its standard library, if it does not find that itself."""
    version: str
    """Without its last part: 3.13."""

    def compile(self, sources: Sequence[tuple[str, bytes]]) -> list[bytes | None]:
        """Returns the bytecode of each source; None for one that is no Python. Raises `ImageError` if it does not run.

        The same sources give the same bytes: new processes with a fixed hash seed compile them in this order.
        """
        parts = [sources[at : at + _FILES_PER_PROCESS] for at in range(0, len(sources), _FILES_PER_PROCESS)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [each for part in pool.map(self._compile, parts) for each in part]

    def _compile(self, sources: Sequence[tuple[str, bytes]]) -> list[bytes | None]:
        environment = {"PYTHONHASHSEED": "0", "PYTHONHOME": self.home, "PATH": "", "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(  # noqa: S603 - the image's Python, and a program of ours
                [*self.argv, "-s", "-S", "-P", "-W", "ignore", "-c", _PROGRAM],
                input=marshal.dumps(list(sources), 2),
                env={name: value for name, value in environment.items() if value},
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            found: list[bytes | None] = marshal.loads(done.stdout)  # noqa: S302 - of our own program
        except (OSError, subprocess.SubprocessError, ValueError, EOFError) as error:
            said = getattr(error, "stderr", b"") or b""
            lines = said.decode(errors="replace").strip().splitlines()[-1:] or [str(error)]
            raise ImageError(
                f"the Python of the base, {self.argv[-1]}, does not run on this machine: {lines[0]}"
            ) from None
        return found


def interpreter_in(root: Path, tree: FileTree, python: BasePython, machine: str) -> Interpreter:
    """Returns the interpreter of a base that was unpacked into a folder, run by the base's own loader and libraries."""
    program = tree.resolve(python.executable)
    content = tree.read(python.executable)
    loader = _LOADER.search(content) if content is not None else None
    if program is None or loader is None:
        raise ImageError(f"/{python.executable}: expected a Python that is linked with glibc, got something else")
    places = [tree.resolve(each.format(machine)) for each in _LIBRARY_FOLDERS]
    libraries = ":".join(str(root / place) for place in places if place and place in tree)
    start = str(root / (tree.resolve(loader[0].decode()) or ""))
    return Interpreter(
        argv=(start, "--library-path", libraries, str(root / program)),
        home=str(root / PurePosixPath(program).parent.parent),
        version=python.minor,
    )


def interpreter_of_this_machine(version: str) -> Interpreter:
    """Returns a Python of that version outside of the base, for machines that no platform of the image is for."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = sys.executable if running == version else shutil.which(f"python{version}")
    if not found:
        raise ImageError(
            f"expected Python {version} to compile with, got none on this machine; add {host_platform() or 'its platform'} to "
            f"[tool.navarch.build] platforms, or install Python {version}"
        )
    return Interpreter(argv=(found,), version=version)


def bytecode_of(tree: FileTree, interpreter: Interpreter, *folders: str) -> FileTree:
    """Returns the bytecode of all modules in these folders of the tree, at the places where Python looks for it."""
    sources = list(_sources(tree, folders))
    compiled = interpreter.compile([(f"/{path}", content) for path, content in sources])
    found = FileTree()
    for (path, _), bytecode in zip(sources, compiled, strict=True):
        if bytecode is not None:
            place = PurePosixPath(path)
            name = f"{place.stem}.cpython-{interpreter.version.replace('.', '')}.pyc"
            found.add_file(f"{place.parent}/__pycache__/{name}", bytecode)
    return found


def _sources(tree: FileTree, folders: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    within = tuple(f"{folder}/" for folder in folders)
    for path, entry in tree:
        if entry.kind == "file" and path.endswith(".py") and path.startswith(within):
            yield path, entry.content
