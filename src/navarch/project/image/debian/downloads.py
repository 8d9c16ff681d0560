"""`Downloads`: files of mirrors, kept by their digests."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import random
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import aiohttp
from yarl import URL

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.connections import Connector
from navarch._base.tasks import AsyncCloseable
from navarch._version import __version__
from navarch.errors import ImageError
from navarch.project.image.debian.mirrors import Proxies, shown

T = TypeVar("T")
Received = Callable[[int], None]
"""Called with the bytes of a file that are there."""
_ATTEMPTS: Final = 4
_CHUNK: Final = 2**18
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)
_MISSING: Final = frozenset({404, 410})
_RETRIED: Final = frozenset({408, 416, 425, 429, 500, 502, 503, 504})
_FAULTS: Final = (aiohttp.ClientError, TimeoutError, ConnectionError)
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_HEADERS: Final = {"User-Agent": f"navarch/{__version__}", "Accept-Encoding": "identity"}


class Downloads(AsyncCloseable):
    """Fetches files, and keeps them in a folder under their digests. A kept file is verified before each use.

    A download that broke off continues where it ended, also in a later process; a mirror that is slow or overloaded is
    asked again.
    """

    def __init__(self, folder: Path, proxies: Proxies, clock: Clock) -> None:
        self._folder = folder
        self._proxies = proxies
        self._clock = clock
        self._random = random.Random(0)  # noqa: S311 - delays between attempts
        self._opened: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._opened = aiohttp.ClientSession(
            connector=Connector(limit_per_host=8), timeout=_TIMEOUT, headers=_HEADERS, auto_decompress=False
        )
        return self

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def read(self, url: str, *, largest: int) -> bytes | None:
        """Returns a file that may change at any time; None if the mirror does not have it."""

        async def attempt() -> bytes | None:
            content = bytearray()
            async with self._answer(url) as answer:
                if answer.status in _MISSING:
                    return None
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    content += chunk
                    if len(content) > largest:
                        raise ImageError(f"{shown(url)}: expected at most {largest} bytes, got more")
            return bytes(content)

        return await self._retried(url, attempt)

    async def fetch(
        self, url: str, *, sha256: str, size: int, name: str, received: Received | None = None
    ) -> Path | None:
        """Returns the file of that digest, from the folder, else from the mirror; None if neither has it.

        Raises `ImageError` if the mirror has another file there, cannot be reached, or the disk is full.
        """
        target = self._folder / "sha256" / sha256
        report = received or (lambda _: None)
        with _file_errors(target):
            if await asyncio.to_thread(_has_digest, target, sha256):
                report(size)
                return target
            return await self._download(url, target, size, name, report)

    async def _download(self, url: str, target: Path, size: int, name: str, received: Received) -> Path | None:
        with _part_of(target) as part:

            async def attempt() -> Path | None:
                started_at = part.seek(0, os.SEEK_END)
                if not await self._complete(url, part, size, received):
                    return None
                found = await asyncio.to_thread(_digest, part)
                if found == target.name:
                    os.replace(part.name, target)  # noqa: PTH105 - as fast as any call that does not wait
                    return target
                part.truncate(0)
                if started_at:  # what was there may be of another file
                    raise ConnectionError(f"continued to the SHA-256 {found}")
                raise ImageError(
                    f"{name}: expected the SHA-256 {target.name}, got {found} from {shown(url)}; name another --mirror"
                )

            return await self._retried(url, attempt)

    async def _complete(self, url: str, part: IO[bytes], size: int, received: Received) -> bool:
        """Appends what is missing; returns False if the mirror does not have the file."""
        start = part.tell()
        if start == size:
            return True
        async with self._answer(url, start) as answer:
            if answer.status in _MISSING:
                return False
            if not _continues(answer, start):
                part.seek(part.truncate(0))
            async for chunk in answer.content.iter_chunked(_CHUNK):
                part.write(chunk)
                if part.tell() > size:
                    part.truncate(0)
                    raise ImageError(f"{shown(url)}: expected {size} bytes, got more; name another --mirror")
                received(part.tell())
        part.flush()
        if part.tell() < size:
            raise ConnectionError(f"the answer ended after {part.tell()} of {size} bytes")
        return True

    @asynccontextmanager
    async def _answer(self, url: str, start: int = 0) -> AsyncIterator[aiohttp.ClientResponse]:
        address = URL(url, encoded=True)
        headers = {"Range": f"bytes={start}-"} if start else {}
        if self._opened is None:
            raise RuntimeError("expected `async with`")
        async with self._opened.get(address, headers=headers, proxy=self._proxies.proxy_for(address)) as answer:
            if answer.status in _RETRIED:
                raise ConnectionError(f"it answered {answer.status} {answer.reason}")
            if answer.status >= 400 and answer.status not in _MISSING:
                raise ImageError(
                    f"{shown(url)}: expected the file, got {answer.status} {answer.reason}; check --mirror and the proxy"
                )
            yield answer

    async def _retried(self, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        delays = BackoffDelays(Backoff(), self._random)
        fault: Exception | None = None
        for _ in range(_ATTEMPTS):
            if fault is not None:
                await self._clock.sleep(delays.next_delay())
            try:
                return await attempt()
            except _FAULTS as error:
                fault = error
        raise ImageError(
            f"{shown(url)}: expected the file, got no whole answer in {_ATTEMPTS} attempts: {fault or 'no answer'}; check "
            f"the network, --mirror and the proxy"
        ) from None


def _continues(answer: aiohttp.ClientResponse, start: int) -> bool:
    found = _RANGE.match(answer.headers.get("Content-Range", ""))
    return answer.status == 206 and found is not None and int(found[1]) == start


def _has_digest(file: Path, sha256: str) -> bool:
    try:
        with file.open("rb") as content:
            return _digest(content) == sha256
    except FileNotFoundError:
        return False


def _digest(content: IO[bytes]) -> str:
    content.seek(0)
    return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # it reads, and has no buffer of its own


@contextmanager
def _file_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ImageError(
            f"{target.parent}: expected to write a package into the cache, got: {error.strerror}"
        ) from None


@contextmanager
def _part_of(target: Path) -> Iterator[IO[bytes]]:
    """Yields the unfinished file, which nobody else writes; who comes second gets one of his own, which is not kept."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = target.with_name(f"{target.name}.part")
    with place.open("ab+") as part:
        if _is_ours(part, place):
            try:
                yield part
            finally:
                if not os.fstat(part.fileno()).st_size:
                    place.unlink(missing_ok=True)
            return
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f"{target.name}.", suffix=".part", delete=False) as own:
        try:
            yield own
        finally:
            Path(own.name).unlink(missing_ok=True)


def _is_ours(part: IO[bytes], place: Path) -> bool:
    """Locks the file until it is closed. Another process may have finished and moved it since it was opened."""
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(part.fileno()).st_ino == place.stat().st_ino
    except OSError:
        return False
