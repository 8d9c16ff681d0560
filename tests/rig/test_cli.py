"""The command line, where no cluster is needed."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from rig import cli, named, process
from rig.errors import RigError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own for every test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "navarch" / "rig"


def test_kubeconfig_of_missing_cluster_names_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """A user's mistake is one message with a remedy, no traceback."""
    assert cli.main(["kubeconfig", "--name", "dev"]) == 1
    assert "start it with: python -m rig up --name dev" in capsys.readouterr().err


def test_down_without_cluster_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Stopping what does not run succeeds and says so."""
    assert cli.main(["down"]) == 0
    assert "cluster 'default' was not up" in capsys.readouterr().err


def test_status_without_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty state is an empty list, for people and for programs."""
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().out == "no clusters\n"
    assert cli.main(["status", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_names_that_are_paths_are_refused() -> None:
    """A name becomes a folder, so it must not lead elsewhere."""
    with pytest.raises(RigError, match=r"expected a name .* got '\.\./x'"):
        named.folder_of("../x")


def test_down_never_kills_a_recycled_process_id(state: Path) -> None:
    """If the recorded supervisor is gone and another process has its id, only the folder is removed."""
    mine = process.identify(os.getpid())
    assert mine is not None
    folder = state / "dev"
    folder.mkdir(parents=True)
    (folder / "supervisor.json").write_text(json.dumps(asdict(replace(mine, started=mine.started - 1))))
    assert named.find("dev") is None
    assert named.down("dev")
    assert not folder.exists()


def test_missing_tool_is_reported_without_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`build` on a machine without Go explains itself."""
    monkeypatch.setenv("NAVARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(["build"]) == 1
    assert capsys.readouterr().err.startswith("rig: go was not found on PATH; install it with:")
