"""Kills commands before each of their changes to files, and repeats them: a program of its own, because it forks.

python killed_commands.py FOLDER STRIDE
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from navarch.project.project import Project
from navarch.project.scaffold import render as rendering
from navarch.project.scaffold.create_api import create_api
from navarch.project.scaffold.delete import plan_delete_api
from navarch.project.scaffold.init import init_project
from navarch.project.scaffold.scaffolds import TypesScaffold
from navarch.project.scaffold.update import update
from project.scaffolded import CACHE, MEMCACHED, PLAIN, cache_project, files_of

CHANGES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "tempfile.mkstemp"})
Command = Callable[[Path], object]


def main(folder: Path, stride: int) -> None:
    """Prints, for each command, how often it was killed: before the first change and each `stride` changes later."""
    empty = folder / "empty"
    empty.mkdir()
    project = cache_project(folder / "project", PLAIN).root
    old = folder / "old"
    shutil.copytree(project, old, symlinks=True)
    for path in ("Makefile", "README.md", "src/cache_operator/controllers/plain.py"):  # as older templates had them
        for copy in (old / path, old / ".navarch/pristine" / path):
            copy.write_text("older\n" + copy.read_text())
    (old / "Makefile").write_text((old / "Makefile").read_text() + "mine:\n")
    commands: dict[str, tuple[Path, Command]] = {
        "init": (empty, lambda root: init_project(root, CACHE, namespaced=False)),
        "init NAME": (empty, lambda root: init_project(root / "new", CACHE, namespaced=False)),
        "create api": (project, lambda root: create_api(Project.find(root), MEMCACHED)),
        "delete api": (
            project,
            lambda root: plan_delete_api(Project.find(root), "cache", "v1alpha1", "Plain").execute(),
        ),
        "update": (old, lambda root: update(Project.find(root))),
    }
    rendering.render_part(
        CACHE,
        TypesScaffold(  # loads the template engine once
            group="g", version="v1", kind="K", class_module="cache_operator.api.g.v1.k", short_group="g"
        ),
    )
    for name, (start, command) in commands.items():
        kills = killed_everywhere(folder / f"work {name}", start, command, stride)
        sys.stdout.write(f"{name} {kills}\n")


def killed_everywhere(work: Path, start: Path, command: Command, stride: int) -> int:
    """Runs the command until it was killed before these of its changes; returns how many there are."""
    before = files_of(start)
    after = outcome(work, start, command)
    for kills, count in enumerate(range(1, 1000, stride)):
        shutil.rmtree(work)
        shutil.copytree(start, work, symlinks=True)
        ended = run(command, work, kill_before=count)
        found = {path: text for path, text in files_of(work).items() if ".unfinished" not in path}
        for path, text in found.items():
            assert text in {before.get(path), after.get(path)}, (
                f"{path} is half-written after {count} changes: {text!r}"
            )
        lost = {path for path in before if path in after and path not in found}
        assert not lost, f"lost after {count} changes: {lost}"
        assert run(command, work) or not after.keys() - found.keys(), (
            f"the repeated command failed after {count} changes"
        )
        assert files_of(work) == after, f"another result after {count} changes"
        if ended:
            return kills
    raise AssertionError("expected an end of the changes")


def outcome(work: Path, start: Path, command: Command) -> dict[str, str]:
    """Returns the files after a run that nothing interrupts."""
    shutil.copytree(start, work, symlinks=True)
    assert run(command, work)
    return files_of(work)


def run(command: Command, root: Path, *, kill_before: int = 0) -> bool:
    """Runs the command in a process of its own, killed before that change; returns whether it ended well."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    left = kill_before

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in CHANGES:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        command(root)
    except BaseException as error:  # noqa: BLE001 - the parent continues, and shows it if the files are wrong
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
