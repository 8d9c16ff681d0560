"""The user's credentials for registries, from the files and helpers of Docker and podman."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch._base.tasks import within
from navarch.errors import CredentialError
from navarch.oci.reference import DOCKER_HUB

_DOCKER_HUB_KEY: Final = "https://index.docker.io/v1/"
_DOCKER_HUB_HOSTS: Final = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_TOKEN_USER: Final = "<token>"  # noqa: S105 - what helpers write in place of a user
_HELPER_SECONDS: Final = 30.0
_LARGEST_FILE: Final = 4 * 2**20
_LARGEST_OUTPUT: Final = 2**20


class RegistryCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A user with a password, or an identity token: a refresh token that a token server takes in their place."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    @property
    def basic(self) -> str:
        """Returns the value of a header `Authorization` with user and password."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return f"RegistryCredential(username={self.username!r})"


class CredentialSource(Protocol):
    """Finds the credential of a registry."""

    async def find(self, registry: str) -> RegistryCredential | None:
        """Returns the credential for the registry's host, None without one. Raises `CredentialError`."""
        ...


class _AuthEntry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""


class _DockerConfig(msgspec.Struct, rename="camel"):
    auths: dict[str, _AuthEntry] = {}
    creds_store: str = ""
    cred_helpers: dict[str, str] = {}


class _HelperAnswer(msgspec.Struct, rename="pascal"):
    username: str = ""
    secret: str = ""


class DockerCredentials:
    """The credentials that `docker login` and `podman login` have stored; the first file that has one decides.

    In each file a helper of the registry (`credHelpers`) comes before the common one (`credsStore`), and both before
    `auths`. Files are read when a registry asks for credentials, not before.
    """

    def __init__(self, files: Iterable[Path], clock: Clock | None = None) -> None:
        self._files = tuple(files)
        self._clock = clock or SystemClock()

    @classmethod
    def of_user(cls, environment: Mapping[str, str] | None = None, clock: Clock | None = None) -> DockerCredentials:
        """Returns those of `REGISTRY_AUTH_FILE` or, without that, those of Docker's and podman's own places."""
        environment = os.environ if environment is None else environment
        if chosen := environment.get("REGISTRY_AUTH_FILE"):
            return cls([Path(chosen)], clock)
        home = Path(environment.get("HOME") or Path.home())
        docker = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
        files = [docker / "config.json"]
        if runtime := environment.get("XDG_RUNTIME_DIR"):
            files.append(Path(runtime) / "containers" / "auth.json")
        return cls(files, clock)

    async def find(self, registry: str) -> RegistryCredential | None:
        """Returns the credential for the registry, None without one.

        Raises `CredentialError` with the file, or with the helper, if it cannot be read; never with a credential.
        """
        for file in self._files:
            if (config := _read(file)) is not None and (found := await self._of(config, file, registry)) is not None:
                return found
        return None

    async def _of(self, config: _DockerConfig, file: Path, registry: str) -> RegistryCredential | None:
        helpers = {_host(key): name for key, name in config.cred_helpers.items()}
        if (helper := helpers.get(_host(registry)) or config.creds_store) and (
            found := await self._ask(helper, _server(registry), file)
        ) is not None:
            return found
        for key, entry in config.auths.items():
            if _host(key) == _host(registry) and (found := _of_entry(entry, f"{file}: auths[{key!r}]")) is not None:
                return found
        return None

    async def _ask(self, helper: str, server: str, file: Path) -> RegistryCredential | None:
        name = f"docker-credential-{helper}"
        program = shutil.which(name) if "/" not in helper else None
        if program is None:
            raise CredentialError(f"{file}: expected the credential helper {name} on the PATH, got none; install it")
        again = f"run `echo {server} | {name} get` to see why"
        try:
            code, output = await within(self._clock, _HELPER_SECONDS, _run(program, server))
        except TimeoutError:
            raise CredentialError(
                f"{name}: expected a credential for {server} within {_HELPER_SECONDS:g} s, got none; it was killed"
            ) from None
        except OSError as error:
            raise CredentialError(f"{name}: expected a program that can be run, got: {error.strerror}") from None
        if code != 0:
            if b"credentials not found" in output:
                return None
            raise CredentialError(f"{name}: expected a credential for {server}, got exit code {code}; {again}")
        try:
            found = msgspec.json.decode(output, type=_HelperAnswer)
        except msgspec.MsgspecError:
            raise CredentialError(
                f"{name}: expected JSON with Username and Secret, got something else; {again}"
            ) from None
        if found.username == _TOKEN_USER:
            return RegistryCredential(identity_token=found.secret)
        return RegistryCredential(username=found.username, password=found.secret) if found.secret else None


async def _run(program: str, server: str) -> tuple[int, bytes]:
    """Runs the helper and returns its exit code and output; kills it with its children if this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        program,
        "get",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(ConnectionError):  # a helper need not read what it is asked for
            process.stdin.write(server.encode())
            await process.stdin.drain()
        process.stdin.close()
        output = bytearray()
        while len(output) < _LARGEST_OUTPUT and (chunk := await process.stdout.read(_LARGEST_OUTPUT)):
            output += chunk
        return await process.wait(), bytes(output)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()


def _read(file: Path) -> _DockerConfig | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CredentialError(f"{file}: expected a readable file with credentials, got: {error.strerror}") from None
    try:
        return msgspec.json.decode(content or b"{}", type=_DockerConfig)
    except msgspec.ValidationError as error:  # its text names the field and the type, not the value
        raise CredentialError(f"{file}: expected a Docker configuration, got: {error}") from None
    except msgspec.DecodeError:
        raise CredentialError(f"{file}: expected a Docker configuration as JSON, got something else") from None


def _of_entry(entry: _AuthEntry, where: str) -> RegistryCredential | None:
    if entry.identitytoken:
        return RegistryCredential(identity_token=entry.identitytoken)
    if not entry.auth:
        if not entry.username:
            return None
        return RegistryCredential(username=entry.username, password=entry.password)
    try:
        username, colon, password = base64.b64decode(entry.auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise CredentialError(f"{where}: expected user:password as base64, got something else; log in again")
    return RegistryCredential(username=username, password=password.rstrip("\0"))


def _server(registry: str) -> str:
    """Returns what helpers know the registry as."""
    return _DOCKER_HUB_KEY if _host(registry) == DOCKER_HUB else registry


def _host(key: str) -> str:
    """Returns the host of a key: some are addresses with a scheme and a path."""
    host = key.partition("://")[2] if "://" in key else key
    host = host.partition("/")[0]
    return DOCKER_HUB if host in _DOCKER_HUB_HOSTS else host
