"""`navarch create webhook` adds webhooks to a kind, each as a module of its own."""

import dataclasses
from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold.create_api import create_api
from navarch.project.scaffold.create_webhook import NewWebhooks, create_webhooks
from project.scaffolded import PLAIN, cache_project, files_of, run_module

BOTH = NewWebhooks(group="cache", version="v1alpha1", kind="Plain", types=("defaulting", "validation"))
POD = dataclasses.replace(BOTH, group="core", version="v1", kind="Pod")
CONVERSION = dataclasses.replace(BOTH, types=(), conversion=True)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with one kind."""
    return cache_project(tmp_path, PLAIN)


def test_webhooks_pass_their_tests(project: Project) -> None:
    """Webhooks of a kind of the project and of one of Kubernetes work as they are written."""
    written = create_webhooks(project, BOTH)
    assert written.files == [
        "src/cache_operator/webhooks/plain_defaulting.py",
        "src/cache_operator/webhooks/plain_validation.py",
        "tests/test_plain_defaulting.py",
        "tests/test_plain_validation.py",
    ]
    create_webhooks(written.project, POD)
    run_module(project, "ruff", "format", "--check", "--diff", "--no-cache")
    run_module(project, "ruff", "check", "--no-cache")
    assert "4 passed" in run_module(project, "pytest", "-q", "-p", "no:cacheprovider", "-k", "admits or served")


def test_webhooks_are_in_project(project: Project) -> None:
    """PROJECT has them as kubebuilder does, also if they come one after the other."""
    project = create_webhooks(project, dataclasses.replace(BOTH, types=("defaulting",))).project
    project = create_webhooks(project, dataclasses.replace(BOTH, types=("validation",))).project
    (entry,) = Project.find(project.root).file.resources
    assert entry.webhooks is not None
    assert (entry.webhooks.defaulting, entry.webhooks.validation, entry.webhooks.conversion) == (True, True, False)


def test_conversion_of_versions_that_nothing_converts(project: Project) -> None:
    """A version is converted in one way: a second conversion is refused."""
    project = create_api(project, dataclasses.replace(PLAIN, version="v1", controller=False)).project
    with pytest.raises(ConfigError, match="expected another version of Plain that nothing converts yet"):
        create_webhooks(project, CONVERSION)
    with pytest.raises(
        ConfigError, match="are converted already; remove that conversion first: navarch delete webhook"
    ):
        create_webhooks(project, dataclasses.replace(CONVERSION, spokes=("v1",)))
    with pytest.raises(ConfigError, match=r"--spoke: expected another version of Plain \(v1\), got 'v3'"):
        create_webhooks(project, dataclasses.replace(CONVERSION, spokes=("v3",)))


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (dataclasses.replace(BOTH, types=()), "add --defaulting, --programmatic-validation or --conversion"),
        (dataclasses.replace(BOTH, kind="Unknown"), "expected a kind of this project or of Kubernetes"),
        (dataclasses.replace(BOTH, spokes=("v1",)), "--spoke: expected --conversion beside it"),
        (dataclasses.replace(POD, types=(), conversion=True), "--conversion: expected a kind of this project"),
        (dataclasses.replace(BOTH, group="Cache"), "--group: expected a DNS subdomain"),
    ],
)
def test_webhooks_that_cannot_be(project: Project, request_: NewWebhooks, reason: str) -> None:
    """Each is refused with the remedy, before anything is written."""
    before = files_of(project.root)
    with pytest.raises(ConfigError, match=reason):
        create_webhooks(project, request_)
    assert files_of(project.root) == before


def test_existing_webhook_is_refused(project: Project) -> None:
    """--force replaces its files."""
    project = create_webhooks(project, BOTH).project
    file = project.root / "src/cache_operator/webhooks/plain_defaulting.py"
    file.write_text("mine")
    with pytest.raises(ConfigError, match=r"has a defaulting webhook already, in webhooks/plain_defaulting\.py"):
        create_webhooks(project, BOTH)
    assert file.read_text() == "mine"
    create_webhooks(project, dataclasses.replace(BOTH, force=True))
    assert file.read_text() != "mine"
