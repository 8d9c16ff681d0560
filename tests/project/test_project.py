"""A project is found by its `PROJECT`, and has the settings of its `pyproject.toml`."""

from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.project_file import LAYOUT, ApiEntry, ProjectFile, ResourceEntry, WebhooksEntry

WHOLE = ProjectFile(
    domain="example.com",
    layout=[LAYOUT],
    project_name="cache-operator",
    repo="https://example.com/cache-operator",
    resources=[
        ResourceEntry(
            api=ApiEntry(namespaced=True),
            controller=True,
            domain="example.com",
            group="cache",
            kind="Memcached",
            path="cache_operator.api.cache.v1alpha1.memcached",
            version="v1alpha1",
            webhooks=WebhooksEntry(validation=True, webhook_version="v1"),
        )
    ],
    version="3",
)


def write(folder: Path, text: str) -> None:
    """Writes `PROJECT` into the folder."""
    (folder / "PROJECT").write_text(text)


def test_project_file_survives_a_round_trip() -> None:
    """What is written is read again, field by field."""
    assert ProjectFile.parse(WHOLE.text(), "PROJECT") == WHOLE


def test_project_is_found_from_a_folder_inside(tmp_path: Path) -> None:
    """Names that are not set follow from the project's name."""
    write(tmp_path, WHOLE.text())
    inside = tmp_path / "src" / "deep"
    inside.mkdir(parents=True)
    found = Project.find(inside)
    assert found.root == tmp_path
    assert (found.settings.package, found.settings.namespace) == ("cache_operator", "cache-operator-system")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version: '4'\nlayout: [python.navarch.dev/v1]", "expected version \"3\", got '4'"),
        ("domain: x\nlayout:\n- go.kubebuilder.io/v4\nversion: '3'", "project of another tool"),
        ("a: [", "expected YAML"),
        ("- a", "got list"),
        (f"version: '3'\nlayout: [{LAYOUT}]\nprojectName: a", "missing required field `domain`"),
    ],
)
def test_project_file_that_is_not_ours_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """The error names the file, and says what was expected."""
    write(tmp_path, text)
    with pytest.raises(ConfigError, match=r"^PROJECT: ") as caught:
        Project.find(tmp_path)
    assert complaint in str(caught.value)


def test_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    """The error names the command that begins one."""
    with pytest.raises(ConfigError, match="navarch init"):
        Project.find(tmp_path)


def test_misspelt_setting_is_refused(tmp_path: Path) -> None:
    """The error names the table and the key."""
    write(tmp_path, WHOLE.text())
    (tmp_path / "pyproject.toml").write_text("[tool.navarch]\nimages = 'x'\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml: \[tool.navarch\]: .*images"):
        Project.find(tmp_path)
