"""The tutorials of the SDK, typed as they are printed by somebody who has only the wheel, on both engines."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import rig
from docs.pages import DOCS
from docs.terminals import DONE, SECONDS, Terminal, newcomer_environment
from rig import programs

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1500),
]  # kubectl comes from the rig, and pip installs everything anew

PAGES = ("tutorial-memcached.md", "tutorial-imockpod.md")
ENGINES = ("real", "embedded")
"""Of each page: they have the same commands, and each takes two minutes, most of them pip's and mypy's."""
_BLOCK = re.compile(r"(?P<prose>.*?)```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_REPLACED = re.compile(r"Replace `([^`]+)` by:\s*$")
_OF_THE_EMBEDDED_CLUSTER = re.compile(r"navarch cluster (up|down|kubeconfig)")
_RUNS_ON = re.compile(r"make (install )?run\b")
_VARYING = (
    (r"^(bin/|\.venv/|python3 -m venv)\S*.*\n", ""),  # make shows the commands that it runs
    (r"^make(\[\d+\])?: .*\n", ""),
    (r"in [\d.]+s( =+)?", "in SECONDS"),
    (r"^[=.]+ +(?=\d+ passed)", ""),
    (r"^\.+ +\[100%\]\n", ""),
    (
        r"^(=+ test session starts =+|platform |rootdir: |configfile: |testpaths: |plugins: |asyncio: |hypothesis profile|collected ).*\n",
        "",
    ),
    (r"\b\d+(m\d+)?s$", "AGE"),
    (r"[ \t]+", " "),
    (r" $", ""),
    (r"^\n", ""),
)


@pytest.mark.parametrize(("page", "engine"), [*zip(PAGES, ENGINES, strict=True)])
def test_tutorial_passes_as_it_is_printed(
    page: str, engine: str, tmp_path: Path, wheel: Path, request: pytest.FixtureRequest
) -> None:
    """Every file as it stands there, every command with the answer that stands there, in an empty environment."""
    cluster: rig.Cluster | None = request.getfixturevalue("rig_cluster") if engine == "real" else None
    kubeconfig = cluster.kubeconfig if cluster is not None else None
    with newcomer(tmp_path, wheel, kubeconfig) as reader:
        for block in _BLOCK.finditer((DOCS / page).read_text()):
            reader.read(block["prose"])
            if block["language"] == "sh":
                reader.install(block["text"])
            elif block["language"] == "console":
                reader.type(block["text"])
            else:
                reader.save(block["text"])
        assert reader.commands > 10


class Newcomer:
    """Does what the page says, in two terminals. With a kubeconfig, commands about an embedded cluster are left out."""

    def __init__(
        self, folder: Path, wheel: Path, kubeconfig: Path | None, terminals: ExitStack, environment: Mapping[str, str]
    ) -> None:
        self.commands = 0
        self._project = folder
        self._wheel = wheel
        self._is_real = kubeconfig is not None
        self._terminals = terminals
        self._environment = environment
        self._file = ""
        self._first = self._terminal = self._opened(folder)

    def _opened(self, folder: Path) -> Terminal:
        terminal = Terminal(folder, self._environment)
        self._terminals.callback(terminal.close)
        return terminal

    def read(self, prose: str) -> None:
        """Notes which file is replaced, and does what is said without a block."""
        replaced = _REPLACED.search(prose)
        self._file = replaced[1] if replaced else ""
        if "open a second terminal in the same folder" in prose:
            said = self._first.until(f'"event": "listening"|{DONE}')
            assert '"event": "listening"' in said, f"expected an operator that runs, got {said}"
            self._terminal = self._opened(self._project)
        if "End the operator in the first terminal with Ctrl-C" in prose:
            self._first.interrupt()
            self._first.end()
            self._terminal = self._first

    def install(self, commands: str) -> None:
        """All of them succeed."""
        said, code = self._terminal.answer(f"set -e\n{commands.replace('path/to/the/clone', str(self._wheel))}set +e")
        assert code == 0, said
        self._project /= "tutorial"

    def save(self, text: str) -> None:
        """In the place of the file that was named."""
        assert self._file, f"expected a sentence that names the file of this block: {text[:80]}"
        file = self._project / self._file
        assert file.exists(), f"expected a file that can be replaced, got none: {file}"
        file.write_text(text)

    def type(self, console: str) -> None:
        """Each command, whose answer has to be the one that is printed, where one is."""
        for entry in console.removeprefix("$ ").split("\n$ "):
            command, _, expected = entry.partition("\n")
            if self._is_real and _OF_THE_EMBEDDED_CLUSTER.search(command):
                continue
            self.commands += 1
            if _RUNS_ON.search(command):
                self._terminals.enter_context(_health_port())
                self._terminal.begin(command)
                return
            if command.startswith("cd "):
                self._project /= command.removeprefix("cd ")
            said, code = self._terminal.answer(command)
            if expected:
                assert _normal(said) == _normal(expected), f"$ {command}"
            else:
                assert code == 0, f"$ {command}\n{said}"


def _normal(printed: str) -> list[str]:
    """Without what differs from run to run: times, ages, widths of columns, and what make and pytest add."""
    for pattern, text in _VARYING:
        printed = re.sub(pattern, text, printed, flags=re.MULTILINE)
    return printed.strip().splitlines()


@contextmanager
def newcomer(folder: Path, wheel: Path, kubeconfig: Path | None) -> Iterator[Newcomer]:
    """With a machine that has Python, make and kubectl; nothing of theirs is left at the end."""
    environment = newcomer_environment(folder)
    (folder / "tools" / "kubectl").symlink_to(programs.KUBECTL.path)
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    with ExitStack() as terminals:
        terminals.callback(_take_down, folder / "tutorial" / "tools" / "bin" / "navarch", environment)
        yield Newcomer(folder, wheel, kubeconfig, terminals, environment)


@contextmanager
def _health_port() -> Iterator[None]:
    """The port of /healthz that `make run` takes, for one newcomer at a time; the folder of this file is the lock of all of them."""
    folder = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _take_down(navarch: Path, environment: Mapping[str, str]) -> None:
    if navarch.exists():
        command = [str(navarch), "cluster", "down", "--delete"]
        subprocess.run(command, env=environment, check=False, timeout=SECONDS, capture_output=True)
