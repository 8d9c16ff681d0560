"""The files of a claim, as a store: over the connection to the pod that has it mounted."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

import aiohttp
import msgspec

from etcd_operator.backup.faults import StoreError
from etcd_operator.manifests import url

__all__ = ["ClaimFiles", "Connection"]

_PIECE: Final = 1 << 20
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=300)
_FULL: Final = 507
_MEANING: Final = {
    404: "there is no such file on the claim {}",
    _FULL: "the claim {} is full",
}
_NOT_ALLOWED: Final = "the pod's user may not do that there: set pod.securityContext of the cluster to one who may"
_WORDS: Final = {
    "EACCES": _NOT_ALLOWED,
    "EPERM": _NOT_ALLOWED,
    "EROFS": "it is read-only",
    "ENAMETOOLONG": "the name is too long",
}


class Connection:
    """To one pod, at its address; whoever does not prove that he is that pod is told nothing."""

    def __init__(self, session: aiohttp.ClientSession, url: str, host: str) -> None:
        self._session = session
        self._url = url
        self._host = host

    @classmethod
    @asynccontextmanager
    async def to(cls, address: str, port: int, tls: ssl.SSLContext, host: str) -> AsyncIterator[Connection]:
        """While the block lasts."""
        connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
        async with aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT) as session:
            yield cls(session, f"{url('https', address, port)}/", host)

    @asynccontextmanager
    async def ask(self, method: str, name: str = "", **fields: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Raises what aiohttp raises."""
        url = self._url + quote(name)
        async with self._session.request(method, url, server_hostname=self._host, **fields) as answer:
            yield answer

    async def answers(self) -> bool:
        """Whether it is there."""
        try:
            async with self.ask("GET"):
                return True
        except (aiohttp.ClientError, TimeoutError):
            return False


class ClaimFiles:
    """A `Store`. Half a file is never found under its name; the words of the file system go into ours."""

    def __init__(self, claim: str, connection: Connection) -> None:
        self._claim = claim
        self._connection = connection

    async def put(self, name: str, content: Path | bytes) -> None:
        with ExitStack() as opened:
            data = content if isinstance(content, bytes) else opened.enter_context(_opened(content))
            async with self._asked("PUT", name, data=data):
                return

    async def read(self, name: str) -> AsyncIterator[bytes]:
        async with self._asked("GET", name) as answer:
            async for piece in answer.content.iter_chunked(_PIECE):
                yield piece

    async def rename(self, old: str, new: str) -> int:
        async with self._asked("POST", new, params={"from": old}) as answer:
            return int(await answer.text())

    async def delete(self, name: str) -> None:
        async with self._asked("DELETE", name):
            return

    async def names(self, start: str) -> list[str]:
        async with self._asked("GET", params={"start": start}) as answer:
            return msgspec.json.decode(await answer.read(), type=list[str])

    @asynccontextmanager
    async def _asked(self, method: str, name: str = "", **fields: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._connection.ask(method, name, **fields) as answer:
                if answer.status >= 400:
                    raise StoreError(self._refusal(answer.status, await answer.text()))
                yield answer
        except (aiohttp.ClientError, TimeoutError):
            raise StoreError(
                f"the pod that has the claim {self._claim} mounted broke off, or does not answer"
            ) from None

    def _refusal(self, code: int, word: str) -> str:
        if code in _MEANING:
            return _MEANING[code].format(self._claim)
        return f"the claim {self._claim} cannot be used: {_WORDS.get(word, f'its file system says {word or code}')}"


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")
