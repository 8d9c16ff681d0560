"""An environment without a cluster, certificates of our own, and exec plugins as shell scripts."""

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from certificates import Signed, sign

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


Issue = Callable[..., Signed]


@pytest.fixture(scope="session")
def issue() -> Issue:
    """Makes a certificate; signed by `by`, or by itself as a CA."""

    def make(name: str, by: Signed | None = None, begin: datetime = START, days: int = 365) -> Signed:
        return sign(name, by, host=name, begin=begin, lifetime=timedelta(days=days))

    return make


class Pki(NamedTuple):
    """A CA, and a client and a server that it vouches for; valid for long."""

    ca: Signed
    client: Signed
    server: Signed


@pytest.fixture(scope="session")
def pki(issue: Issue) -> Pki:
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    ca = issue("ca", begin=begin, days=36500)
    return Pki(ca, issue("client", ca, begin, 36500), issue("api.example", ca, begin, 36500))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a kubeconfig with one context, changed by the entries given; returns its path."""

    def make(
        name: str = "config", *, cluster: Mapping[str, Any] | None = None, user: Any = None, **fields: Any
    ) -> Path:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dev",
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {} if user is None else user}],
            **fields,
        }
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    return make


Plugin = Callable[..., Path]


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Writes an exec plugin: a shell script that notes each run in `runs` and then does what `body` says."""

    def make(body: str, name: str = "plugin") -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{body}\n", encoding="utf-8")
        path.chmod(0o700)
        return path

    return make


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], int]:
    """How often a plugin has run."""
    return lambda: (tmp_path / "runs").read_text().count("run") if os.path.exists(tmp_path / "runs") else 0  # noqa: PTH110 - one line


def printed(version: str = "v1", **status: Any) -> str:
    """The shell command that prints an ExecCredential with this status."""
    answer = {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(answer)}\nEND"


@pytest.fixture(name="printed")
def printed_fixture() -> Callable[..., str]:
    return printed
