"""`navarch init` writes a whole project, or nothing."""

from pathlib import Path

import msgspec
import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold.init import init_project
from navarch.project.scaffold.record import pristine
from navarch.project.scaffold.render import render
from navarch.project.scaffold.scaffolds import ProjectScaffold, Scaffolds
from project.scaffolded import CACHE, cache_project, files_of


def named(name: str) -> ProjectScaffold:
    """Returns the scaffold of a project of that name."""
    return msgspec.structs.replace(CACHE, name=name)


def test_init_writes_a_project(tmp_path: Path) -> None:
    """The folder has a PROJECT that commands find, the rendered files, their pristine copies and the link `bin`."""
    project = cache_project(tmp_path / "cache-operator")
    assert Project.find(project.root / "src").file.project_name == "cache-operator"
    assert Scaffolds.read(project.root) == Scaffolds(project=CACHE)
    files = render(Scaffolds(project=CACHE))
    assert files.items() <= files_of(project.root).items()
    assert pristine(project.root) == files
    assert (project.root / "bin").readlink() == Path(".venv/bin")
    assert [each.name for each in tmp_path.iterdir()] == ["cache-operator"]


def test_init_records_flags(tmp_path: Path) -> None:
    """--repo, --owner, --license and --namespaced are in the files that they are for."""
    scaffold = msgspec.structs.replace(CACHE, repo="https://example.com/cache", owner="ACME")
    project = init_project(tmp_path / "one", scaffold, namespaced=True).project
    assert project.file.namespaced
    assert project.file.repo == "https://example.com/cache"
    assert "Copyright ACME\n" in (project.root / "src/cache_operator/__init__.py").read_text()
    assert 'urls = { Source = "https://example.com/cache" }' in (project.root / "pyproject.toml").read_text()
    none = init_project(tmp_path / "two", msgspec.structs.replace(CACHE, license="none"), namespaced=False).project
    assert (none.root / "src/cache_operator/__init__.py").read_text().startswith('"""')
    assert "license" not in (none.root / "pyproject.toml").read_text()


def test_init_repeats_itself(tmp_path: Path) -> None:
    """A second run changes nothing, and one after an interruption writes what is missing."""
    project = cache_project(tmp_path)
    before = files_of(tmp_path)
    (tmp_path / "Makefile").unlink()
    (tmp_path / "src/cache_operator/.__main__.py.x1.unfinished").write_text("half")
    assert init_project(tmp_path, CACHE, namespaced=False).files == ["Makefile"]
    assert before.items() <= files_of(tmp_path).items()
    assert project.file == Project.find(tmp_path).file


@pytest.mark.parametrize(
    ("path", "text"), [("main.go", "package main"), ("Makefile", "all:\n"), ("src/other/__init__.py", "")]
)
def test_init_refuses_a_folder_with_other_files(tmp_path: Path, path: str, text: str) -> None:
    """Files that are not of this project are named, and nothing is written."""
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    (tmp_path / ".git").mkdir()
    with pytest.raises(ConfigError, match=f"expected an empty folder, got .* with other files: {path}; "):
        init_project(tmp_path, CACHE, namespaced=False)
    assert files_of(tmp_path) == {path: text}


def test_init_refuses_a_project_of_another_tool(tmp_path: Path) -> None:
    """A PROJECT of operator-sdk for Go is left alone."""
    (tmp_path / "PROJECT").write_text('layout: [go.kubebuilder.io/v4]\nversion: "3"\n')
    with pytest.raises(ConfigError, match="a project of another tool"):
        init_project(tmp_path, CACHE, namespaced=False)
    assert list(files_of(tmp_path)) == ["PROJECT"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Cache", "expected a DNS-1035 label .* got 'Cache'; try 'cache'"),
        ("cache_operator", "try 'cache-operator'"),
        ("3scale", "try 'scale'"),
        ("json", "hides the module json .* try 'json-operator'"),
        ("navarch", "hides the module navarch"),
        ("class", "the keyword 'class'"),
        ("a" * 40, "at most 28 characters"),
        ("", "expected a DNS-1035 label"),
    ],
)
def test_init_refuses_names_that_cannot_be(tmp_path: Path, name: str, reason: str) -> None:
    """A name that Kubernetes or Python refuses is refused with the reason, before anything is written."""
    with pytest.raises(ConfigError, match=reason):
        init_project(tmp_path / "new", named(name), namespaced=False)
    assert not (tmp_path / "new").exists()


def test_init_refuses_a_domain_that_cannot_be(tmp_path: Path) -> None:
    """The domain ends the names of groups."""
    with pytest.raises(
        ConfigError, match=r"--domain: expected a DNS subdomain .* got 'Example_com'; try 'example-com'"
    ):
        init_project(tmp_path / "new", msgspec.structs.replace(CACHE, domain="Example_com"), namespaced=False)


def test_init_refuses_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """A file of the project's name stays."""
    (tmp_path / "cache-operator").write_text("mine")
    with pytest.raises(ConfigError, match="expected a folder, got a file"):
        cache_project(tmp_path / "cache-operator")
    assert (tmp_path / "cache-operator").read_text() == "mine"


def test_init_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new folder appears with everything in it, or not at all."""

    def full(*_: object) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("navarch.project.scaffold.init.write_scaffolded", full)
    with pytest.raises(OSError, match="No space left"):
        cache_project(tmp_path / "cache-operator")
    assert list(tmp_path.iterdir()) == []
