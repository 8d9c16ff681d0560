"""Credentials come from where `docker login` and `podman login` store them."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from navarch._base.clock import ManualClock
from navarch.errors import CredentialError
from navarch.oci.registry import DockerCredentials, RegistryCredential

_SECRET = "hunter2-hunter2"


def _auth(user: str = "ada") -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{_SECRET}".encode()).decode()}


def _file(path: Path, **content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def _helper(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / f"docker-credential-{name}"
    folder.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("r.example.com:5000", "r.example.com:5000"),
        ("https://r.example.com", "r.example.com"),
        ("https://r.example.com/v2/", "r.example.com"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("docker.io", "registry-1.docker.io"),
    ],
)
async def test_entry_is_found_by_its_host(tmp_path: Path, key: str, registry: str) -> None:
    """Keys are hosts or addresses; Docker Hub has an address of its own."""
    found = DockerCredentials([_file(tmp_path / "config.json", auths={"other.example.com": {}, key: _auth()})])
    assert await found.find(registry) == RegistryCredential(username="ada", password=_SECRET)
    assert await found.find("another.example.com") is None


async def test_files_are_read_in_their_order(tmp_path: Path) -> None:
    """REGISTRY_AUTH_FILE alone if it is set; else Docker's own, then podman's."""
    host = "r.example.com"
    docker = _file(tmp_path / "docker" / "config.json", auths={host: _auth("docker")})
    _file(tmp_path / "run" / "containers" / "auth.json", auths={host: _auth("podman")})
    _file(tmp_path / "home" / ".docker" / "config.json", auths={host: _auth("home")})
    chosen = _file(tmp_path / "chosen.json", auths={host: _auth("chosen")})
    environment = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    async def user(**more: str) -> str:
        found = await DockerCredentials.of_user({**environment, **more}).find(host)
        assert found is not None
        return found.username

    assert await user() == "home"
    assert await user(DOCKER_CONFIG=str(docker.parent)) == "docker"
    assert await user(DOCKER_CONFIG=str(tmp_path / "none")) == "podman"
    assert await user(REGISTRY_AUTH_FILE=str(chosen)) == "chosen"


async def test_identity_token_is_read(tmp_path: Path) -> None:
    """Some registries give out a token at login."""
    file = _file(tmp_path / "config.json", auths={"r.example.com": {**_auth(), "identitytoken": _SECRET}})
    assert await DockerCredentials([file]).find("r.example.com") == RegistryCredential(identity_token=_SECRET)


async def test_helper_is_asked_on_its_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helper of a registry comes before the common one, and both before the file."""
    script = """[ "$1" = get ] && printf '{"ServerURL":"x","Username":"%s","Secret":"{secret}"}' "$(cat)" """
    _helper(tmp_path / "bin", "one", script.replace("{secret}", "first"), monkeypatch)
    _helper(tmp_path / "bin", "two", script.replace("{secret}", "second"), monkeypatch)
    file = _file(
        tmp_path / "config.json",
        auths={"r.example.com": _auth()},
        credsStore="two",
        credHelpers={"r.example.com": "one"},
    )
    stored = DockerCredentials([file])
    assert await stored.find("r.example.com") == RegistryCredential(username="r.example.com", password="first")
    hub = await stored.find("docker.io")
    assert hub == RegistryCredential(username="https://index.docker.io/v1/", password="second")


async def test_helper_without_a_credential_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that knows no credential is no error; `<token>` marks an identity token."""
    _helper(tmp_path / "bin", "none", "echo credentials not found in native keychain; exit 1", monkeypatch)
    file = _file(tmp_path / "config.json", auths={"r.example.com": _auth()}, credsStore="none")
    assert await DockerCredentials([file]).find("r.example.com") == RegistryCredential(username="ada", password=_SECRET)
    _helper(tmp_path / "bin", "none", f"""echo '{{"Username":"<token>","Secret":"{_SECRET}"}}'""", monkeypatch)
    assert await DockerCredentials([file]).find("r.example.com") == RegistryCredential(identity_token=_SECRET)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (f"echo {_SECRET}; echo {_SECRET} >&2; exit 3", "docker-credential-x: expected a credential .* exit code 3"),
        (f"echo {_SECRET}", "docker-credential-x: expected JSON with Username and Secret"),
        ("", "docker-credential-x: expected JSON"),
    ],
)
async def test_helper_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str
) -> None:
    """The error names the helper and the command to try, and never shows what it printed."""
    _helper(tmp_path / "bin", "x", script, monkeypatch)
    file = _file(tmp_path / "config.json", credsStore="x")
    with pytest.raises(CredentialError, match=text) as caught:
        await DockerCredentials([file]).find("r.example.com")
    assert _SECRET not in str(caught.value)


async def test_helper_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper has half a minute; it ends with its children."""
    _helper(tmp_path / "bin", "x", "sleep 1000 & sleep 1000", monkeypatch)
    clock = ManualClock()
    stored = DockerCredentials([_file(tmp_path / "config.json", credsStore="x")], clock)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_caught(stored))
        await clock.until_sleeping()
        await clock.advance(30)
    assert "docker-credential-x: expected a credential for r.example.com within 30 s" in waiting.result()


async def _caught(stored: DockerCredentials) -> str:
    with pytest.raises(CredentialError) as caught:
        await stored.find("r.example.com")
    return str(caught.value)


@pytest.mark.parametrize("helper", ["absent", "../absent"])
async def test_missing_helper_is_named(tmp_path: Path, helper: str) -> None:
    """A helper that is not installed is an error with the file that names it."""
    file = _file(tmp_path / "config.json", credsStore=helper)
    with pytest.raises(CredentialError, match=r"config.json: expected the credential helper .*absent on the PATH"):
        await DockerCredentials([file]).find("r.example.com")


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"auths": {"r.example.com": {"auth": "aHVudGVyMg"}}}', b"\xff"])
async def test_damaged_file_is_named_and_not_shown(tmp_path: Path, content: bytes) -> None:
    """The error has the file, and nothing of what is in it."""
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(CredentialError, match=r"config\.json.*: expected") as caught:
        await DockerCredentials([file]).find("r.example.com")
    assert "aHVudGVyMg" not in str(caught.value)


async def test_absent_and_empty_files_are_none(tmp_path: Path) -> None:
    """Most users have never logged in anywhere."""
    (tmp_path / "empty").touch()
    assert await DockerCredentials([tmp_path / "none", tmp_path / "empty"]).find("r.example.com") is None


def test_credential_is_never_shown() -> None:
    """A credential in a traceback or a log shows the user alone."""
    assert _SECRET not in repr(RegistryCredential(username="ada", password=_SECRET, identity_token=_SECRET))
