"""Building programs, with a stand-in for Go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rig import build, folders, programs
from rig.errors import BuildError
from rig.waiting import wait_for

if TYPE_CHECKING:
    from rig.conftest import FakeGo  # this folder: the name exists for the type checker only


def test_build_makes_every_program_and_says_so(fake_go: FakeGo) -> None:
    """A cold build produces all programs and reports each with its time."""
    fake_go.install()
    lines: list[str] = []
    build.build(progress=lines.append)
    assert all(program.path.read_text() == "program\n" for program in programs.ALL)
    assert [line for line in lines if line.startswith("kubelet: built in ")]


def test_second_build_does_nothing(fake_go: FakeGo) -> None:
    """A warm build neither calls Go nor reports anything."""
    fake_go.install()
    build.build(progress=lambda line: None)
    before = fake_go.calls
    lines: list[str] = []
    build.build(progress=lines.append)
    assert fake_go.calls == before
    assert lines == []


def test_failed_build_shows_output_and_leaves_no_program(fake_go: FakeGo) -> None:
    """What the compiler says reaches the user, and nothing half-built is taken for a program."""
    fake_go.install('echo half > "$2"; echo "no space left" >&2; exit 3')
    with pytest.raises(BuildError, match=r"(?s)etcd: go build ended with exit code 3.*no space left"):
        build.build((programs.ETCD,), progress=lambda line: None)
    assert not programs.ETCD.path.exists()


def test_killed_build_kills_go_and_is_repeated(fake_go: FakeGo, tmp_path: Path) -> None:
    """After SIGKILL nothing keeps compiling, no half-built program remains, and the next build succeeds."""
    fake_go.install(f'echo half > "$2"; echo $$ > {tmp_path}/pid; exec tail -f /dev/null')
    code = "from rig import build, programs; build.build((programs.ETCD,))"
    environment = {**os.environ, "PYTHONPATH": str(folders.SOURCE.parent)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL) as builder:
        pid = wait_for("go to start", lambda: _number(tmp_path / "pid"), seconds=60)
        builder.send_signal(signal.SIGKILL)
    wait_for("go to die", lambda: not Path(f"/proc/{pid}/cmdline").exists(), seconds=60)
    assert not programs.ETCD.path.exists()
    fake_go.install()
    build.build((programs.ETCD,), progress=lambda line: None)
    assert programs.ETCD.path.read_text() == "program\n"


def test_simultaneous_builds_take_turns(fake_go: FakeGo) -> None:
    """Of two builds at once, one builds and the other finds everything done."""
    fake_go.install()
    builders = [threading.Thread(target=build.build, kwargs={"progress": lambda line: None}) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    assert len(fake_go.calls) == len(programs.ALL)


def test_build_command_stamps_the_version() -> None:
    """Without the stamp the API server would report v0.0.0."""
    command = build.build_command(Path("/go"), programs.APISERVER, Path("/out"))
    assert command[:2] == ["/go", "build"]
    assert command[-1] == "k8s.io/kubernetes/cmd/kube-apiserver"
    flags = command[command.index("-ldflags") + 1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.4" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags


@pytest.mark.parametrize(
    ("module", "requirement"),
    [
        ("kubernetes", f"k8s.io/kubernetes {programs.KUBERNETES_VERSION}"),
        ("etcd", f"go.etcd.io/etcd/server/v3 {programs.ETCD_VERSION}"),
        ("etcd", f"go.etcd.io/etcd/etcdutl/v3 {programs.ETCD_VERSION}"),
        ("coredns", f"github.com/coredns/coredns {programs.COREDNS_VERSION}"),
    ],
)
def test_versions_agree_with_go_mod(module: str, requirement: str) -> None:
    """The version in the cache path is the one that Go builds."""
    assert requirement in (folders.SOURCE / module / "go.mod").read_text()


def test_dns_is_linked_from_what_kubernetes_is_made_of() -> None:
    """CoreDNS asks for the same versions as Kubernetes of what both need: else all of that is compiled twice."""
    kubernetes, dns = _requirements("kubernetes"), _requirements("coredns")
    common = kubernetes.keys() & dns.keys()
    assert {"k8s.io/client-go", "k8s.io/api"} <= common
    assert {name: dns[name] for name in common} == {name: kubernetes[name] for name in common}


def _requirements(module: str) -> dict[str, str]:
    lines = (folders.SOURCE / module / "go.mod").read_text().splitlines()
    words = [line.removeprefix("require").split() for line in lines if "=>" not in line]
    return {line[0]: line[1] for line in words if len(line) > 1 and line[1].startswith("v")}


def _number(file: Path) -> int | None:
    return int(file.read_text()) if file.exists() and file.read_text().strip() else None
