"""`navarch init`, `create`, `delete` and `update` print, ask and exit as people and programs expect."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.programs import Program
from interrupts import heed_interrupts
from project.scaffolded import PLAIN, cache_project, files_of

CREATE = ("create", "api", "--group", "cache", "--version", "v1alpha1", "--kind", "Memcached")
KIND = ("--group", "cache", "--version", "v1alpha1", "--kind", "Plain")
NAVARCH = [sys.executable, "-c", "import sys; sys.argv[0] = 'navarch'; from navarch.cli import main; main()"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of commands."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def on_a_terminal(folder: Path, *arguments: str, answers: str) -> tuple[int, str]:
    """Runs the command on a terminal of its own, with these answers; returns its exit code and what the terminal shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*NAVARCH, *arguments], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side has closed it
                break
            if not part:
                break
            shown += part
        code = process.wait(timeout=60)
    os.close(ours)
    return code, shown.decode()


def test_init_writes_code_and_manifests(folder: Path, program: Program) -> None:
    """Programs get the lists of files, and the manifests follow from the code."""
    found = program.json("init", "cache-operator", "--domain", "example.com")
    root = folder / "cache-operator"
    assert found["folder"] == str(root)
    assert "src/cache_operator/__main__.py" in found["written"]
    assert "config/manager/manager.yaml" in found["generated"]
    written = {*found["written"], *found["generated"]} - {"bin"}
    assert written <= files_of(root).keys()


def test_init_takes_the_name_of_the_folder(folder: Path, program: Program) -> None:
    """Without NAME the project is the current folder; --project-name is for a folder of another name."""
    both = program.run("init", "one", "--project-name", "two", "--domain", "example.com")
    assert (both.returncode, "got both" in both.stderr) == (1, True)
    assert program.run("init", "--domain", "example.com").returncode == 0
    assert "projectName: place" in (folder / "PROJECT").read_text()
    (folder / "My Folder").mkdir()
    os.chdir(folder / "My Folder")
    assert "try 'my-folder'" in program.run("init", "--domain", "example.com").stderr
    assert program.run("init", "--project-name", "other", "--domain", "example.com").returncode == 0
    assert "projectName: other" in (folder / "My Folder/PROJECT").read_text()


def test_init_says_what_to_do_next(folder: Path, program: Program) -> None:
    """People get the files, and the next command."""
    done = program.run("init", "cache-operator", "--domain", "example.com")
    assert "Makefile\n" in done.stdout
    assert done.stderr == (
        "Next: cd cache-operator && navarch create api --group NAME --version v1alpha1 --kind KIND\n"
    )


def test_create_api_needs_answers(folder: Path, program: Program) -> None:
    """Without a terminal the error names the flags, and nothing is written."""
    cache_project(folder)
    before = files_of(folder)
    done = program.run(*CREATE)
    assert done.returncode == 1
    assert "there is no terminal to ask on; add --resource or --no-resource" in done.stderr
    assert files_of(folder) == before
    assert "tests/test_memcached.py" in program.json(*CREATE, "--resource", "--controller")["written"]


def test_create_api_asks_on_a_terminal(folder: Path) -> None:
    """The questions are kubebuilder's; anything but yes and no is asked again."""
    cache_project(folder)
    code, shown = on_a_terminal(folder, *CREATE, answers="perhaps\ny\nn\n")
    assert code == 0, shown
    assert shown.count("Create Resource [y/n]") == 2
    assert shown.count("Create Controller [y/n]") == 1
    assert (folder / "src/cache_operator/api/cache/v1alpha1/memcached.py").exists()
    assert not (folder / "src/cache_operator/controllers/memcached.py").exists()


def test_interrupted_question_writes_nothing(folder: Path) -> None:
    """Ctrl-C at a question ends the command with 130."""
    cache_project(folder)
    before = files_of(folder)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*NAVARCH, *CREATE],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - it calls one function of C
    ) as process:
        os.close(theirs)
        try:
            shown = b""
            while b"Create Resource" not in shown:
                shown += os.read(ours, 65536)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
            os.close(ours)
    assert files_of(folder) == before


def test_delete_lists_asks_and_removes(folder: Path, program: Program) -> None:
    """Without a terminal it needs --yes; a no removes nothing."""
    cache_project(folder, PLAIN)
    before = files_of(folder)
    done = program.run("delete", "api", *KIND)
    assert done.returncode == 1
    assert "src/cache_operator/controllers/plain.py\n" in done.stdout
    assert "there is no terminal to ask on; add --yes" in done.stderr
    code, shown = on_a_terminal(folder, "delete", "api", *KIND, answers="n\n")
    assert (code, "nothing was deleted" in shown) == (1, True)
    assert files_of(folder) == before
    assert "tests/test_plain.py" in program.json("delete", "api", *KIND, "--yes")["removed"]
    assert not (folder / "tests/test_plain.py").exists()


def test_webhooks_come_and_go(folder: Path, program: Program) -> None:
    """The flags are kubebuilder's."""
    cache_project(folder, PLAIN)
    flags = ("--defaulting", "--programmatic-validation")
    written = program.json("create", "webhook", *KIND, *flags)["written"]
    assert program.json("delete", "webhook", *KIND, *flags, "--yes")["removed"] == written


def test_update_tells_what_it_does(folder: Path, program: Program) -> None:
    """A conflict is an error with the remedy; --dry-run writes nothing."""
    root = cache_project(folder).root
    assert "up to date with the templates of navarch" in program.run("update").stderr
    for path in ("Makefile", "Dockerfile"):  # as older templates had them
        (root / ".navarch/pristine" / path).write_text("old\n")
    (root / "Dockerfile").write_text("old\n")
    before = files_of(root)
    planned = program.json("update", "--dry-run")
    assert (planned["written"], planned["merged"], planned["conflict"]) == (["Dockerfile"], [], [])
    assert files_of(root) == before
    (root / "Makefile").write_text("mine\n")
    done = program.run("update")
    assert done.returncode == 1
    assert done.stdout == "written   Dockerfile\nconflict  Makefile\n"
    assert "changed by you and by the templates: Makefile; take over what you want" in done.stderr
    assert (root / "Makefile").read_text() == "mine\n"
    refused = program.run("generate")
    assert refused.returncode == 1
    assert "expected no open conflict, got 1 of the last navarch update: Makefile" in refused.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('version: "4"\n', "expected version"),
        ("a: [\n", "expected YAML"),
        ('layout: [go.kubebuilder.io/v4]\nversion: "3"\n', "a project of another tool"),
        (None, "navarch init NAME --domain example.com"),
    ],
)
def test_commands_need_a_project(folder: Path, program: Program, text: str | None, reason: str) -> None:
    """A PROJECT of a newer version, a broken one, one of another tool and none: each has its remedy, and no traceback."""
    if text is not None:
        (folder / "PROJECT").write_text(text)
    for command in ((*CREATE, "--resource", "--controller"), ("update",), ("delete", "api", *KIND, "--yes")):
        done = program.run(*command)
        assert done.returncode == 1
        assert reason in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr


def test_output_is_json(folder: Path, program: Program) -> None:
    """Standard output has the result alone."""
    cache_project(folder)
    done = program.run(*CREATE, "--image", "memcached:1.6-alpine", "--port", "11211", "--output", "json")
    assert json.loads(done.stdout)["written"][0] == "config/samples/cache_v1alpha1_memcached.yaml"
