"""docs/getting-started.md from its first line to its last: typed as it is printed, by somebody who has only the wheel."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from docs.pages import DOCS
from docs.terminals import SECONDS, Terminal, newcomer_environment
from navarch._base.clock import SystemClock

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1500),
]  # kubectl comes from the rig, and pip installs everything anew

PAGE = (DOCS / "getting-started.md").read_text().partition("\n## If you know kopf")[0]
_BLOCK = re.compile(r"(?P<prose>.*?)```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_FILE = re.compile(r"`(\w+\.(?:py|yaml|ini))`")
_REPLACED = re.compile(r"replace the line `(.*)` by\s*$")
_VARYING = (
    (r"^Waiting for deployment .*\n", ""),
    (r"127(\.\d+){3}", "ADDRESS"),
    (r"(website-operator)-[0-9a-z]{5,10}-[0-9a-z]{5}(?![0-9a-z])", r"\1-POD"),
    (r"_[0-9a-f]{16}\b", "_ID"),
    (r"in [\d.]+s", "in SECONDS"),
    (r"\b\d+(m\d+)?s$", "AGE"),
    (r"^\.+ +\[100%\]\n", ""),
    (r"[ \t]+", " "),
    (r" $", ""),
)
_clock = SystemClock()


def test_tutorial_passes_as_it_is_printed(tmp_path: Path, wheel: Path) -> None:
    """Every file as it stands there, every command with the answer that stands there, in an empty environment."""
    with reader(tmp_path, wheel) as following:
        for block in _BLOCK.finditer(PAGE):
            following.read(block["prose"])
            if block["language"] == "sh":
                following.install(block["text"])
            elif block["language"] == "console":
                following.type(block["text"])
            else:
                following.save(block["text"])
        assert following.logs.count('"purpose": "health", "address": ":8081"') == 2


class Reader:
    """Does what the page says, with two terminals; the folder is the one that the page has them make."""

    def __init__(self, folder: Path, wheel: Path, terminals: ExitStack, environment: Mapping[str, str]) -> None:
        self.logs = ""
        """Of the operator in the cluster."""
        self._folder = folder / "websites"
        self._wheel = wheel
        self._terminals = terminals
        self._environment = environment
        self._file = ""
        self._replaced = ""
        self._first = self._terminal = self._opened(folder)

    def _opened(self, folder: Path) -> Terminal:
        terminal = Terminal(folder, self._environment)
        self._terminals.callback(terminal.close)
        return terminal

    def read(self, prose: str) -> None:
        """Notes which file is spoken of, and does what is said without a block."""
        self._file = (_FILE.findall(prose) or [self._file])[-1]
        replaced = _REPLACED.search(prose)
        self._replaced = replaced[1] if replaced else ""
        if "open a second terminal in the same folder" in prose:
            self._first.until(" leads")  # people are slower than the operator's start
            self._terminal = self._opened(self._folder)
        if "End the operator in the first terminal with Ctrl-C" in prose:
            self._first.interrupt()
            said, code = self._first.end()
            assert code == 0, said

    def install(self, commands: str) -> None:
        """All of them succeed."""
        said, code = self._terminal.answer(
            "set -e\n" + commands.replace("path/to/the/clone", str(self._wheel)) + "set +e"
        )
        assert code == 0, said

    def save(self, text: str) -> None:
        """In the file that was spoken of: as its next part, or in the place of the line that was named."""
        file = self._folder / self._file
        written = file.read_text() if file.exists() else ""
        if self._replaced:
            assert written.count(f"{self._replaced}\n") == 1
            file.write_text(written.replace(f"{self._replaced}\n", text))
        else:
            file.write_text(f"{written}\n\n{text}" if written else text)

    def type(self, console: str) -> None:
        """Each command, whose answer has to be the one that is printed, where one is."""
        for entry in console.removeprefix("$ ").split("\n$ "):
            command, _, expected = entry.partition("\n")
            if command == "python website_operator.py":
                self._terminal.begin(command)
                return
            if "cluster down" in command:
                self.logs = self._terminal.answer("kubectl logs -n websites -l app=website-operator")[0]
            said = self._terminal.answer(command)[0]
            deadline = _clock.monotonic() + SECONDS
            while command.startswith("curl ") and "Failed to connect" in said and _clock.monotonic() < deadline:
                said = self._terminal.answer(command)[0]  # a Service hears of ready pods by itself, a moment later
            if expected:
                assert self._normal(said) == self._normal(expected), f"$ {command}"

    def _normal(self, printed: str) -> list[str]:
        """Without what differs from run to run: addresses, ages, names of pods, widths of columns."""
        printed = printed.replace(str(self._folder), "/home/you/websites")
        for pattern, text in _VARYING:
            printed = re.sub(pattern, text, printed, flags=re.MULTILINE)
        return printed.strip().splitlines()


@contextmanager
def reader(folder: Path, wheel: Path) -> Iterator[Reader]:
    """With a machine that has Python and curl; nothing of theirs is left at the end."""
    environment = newcomer_environment(folder)
    with ExitStack() as terminals:
        terminals.callback(_take_down, folder / "websites" / ".venv" / "bin" / "navarch", environment)
        yield Reader(folder, wheel, terminals, environment)


def _take_down(navarch: Path, environment: Mapping[str, str]) -> None:
    if navarch.exists():
        subprocess.run([navarch, "cluster", "down", "--delete"], env=environment, check=False, timeout=SECONDS)
