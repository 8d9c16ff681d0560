"""`ClaimFiles`: a `SnapshotStore` on a claim, over a connection to the pod that mounts it."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

import aiohttp
import msgspec

from etcd_operator.backup.snapshot_store import MAX_NAMES, StoreError, require_at_most
from etcd_operator.manifests import url

_PIECE: Final = 1 << 20
_WORD_BYTES: Final = 64
_NAMES_BYTES: Final = 16 << 20
_ERROR_NAME: Final = re.compile(rb"E[A-Z0-9]{1,20}")
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=300)
_FULL: Final = 507
_MEANING: Final = {
    404: "the file does not exist on the claim {}",
    _FULL: "the claim {} is full",
}
_NOT_ALLOWED: Final = "the pod's user lacks permission: set pod.securityContext of the cluster to a user that has it"
_WORDS: Final = {
    "EACCES": _NOT_ALLOWED,
    "EPERM": _NOT_ALLOWED,
    "EROFS": "its file system is read-only",
    "ENAMETOOLONG": "the name is too long",
}


class ClaimConnection:
    """A connection to one pod, which must prove its identity with its certificate."""

    def __init__(self, session: aiohttp.ClientSession, url: str, host: str) -> None:
        self._session = session
        self._url = url
        self._host = host

    @classmethod
    @asynccontextmanager
    async def to(cls, address: str, port: int, tls: ssl.SSLContext, host: str) -> AsyncIterator[ClaimConnection]:
        """Connects for the duration of the block."""
        connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
        async with aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, auto_decompress=False) as session:
            yield cls(session, f"{url('https', address, port)}/", host)

    @asynccontextmanager
    async def ask(self, method: str, name: str = "", **fields: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request; raises aiohttp's exceptions."""
        url = self._url + quote(name)
        async with self._session.request(
            method, url, server_hostname=self._host, allow_redirects=False, **fields
        ) as answer:
            yield answer

    async def answers(self) -> bool:
        """Reports whether the pod answers."""
        try:
            async with self.ask("GET"):
                return True
        except (aiohttp.ClientError, TimeoutError):
            return False


class ClaimFiles:
    """A `SnapshotStore`: the files of a claim. Error messages name the claim and the file system's error."""

    def __init__(self, claim: str, connection: ClaimConnection) -> None:
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
            text = await _short(answer, _WORD_BYTES)
        if not text.isdigit():
            raise StoreError(self._unknown())
        return int(text)

    async def delete(self, name: str) -> None:
        async with self._asked("DELETE", name):
            return

    async def names(self, start: str) -> list[str]:
        async with self._asked("GET", params={"start": start}) as answer:
            content = await _short(answer, _NAMES_BYTES)
        try:
            names = msgspec.json.decode(content, type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise StoreError(self._unknown()) from None
        require_at_most(len(names), MAX_NAMES)
        return names

    @asynccontextmanager
    async def _asked(self, method: str, name: str = "", **fields: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._connection.ask(method, name, **fields) as answer:
                if answer.status >= 300:
                    raise StoreError(self._refusal(answer.status, await _short(answer, _WORD_BYTES)))
                yield answer
        except (aiohttp.ClientError, TimeoutError):
            raise StoreError(
                f"the pod that mounts the claim {self._claim} closed the connection or does not answer"
            ) from None

    def _refusal(self, code: int, said: bytes) -> str:
        if code in _MEANING:
            return _MEANING[code].format(self._claim)
        word = said.decode("ascii", "replace") if _ERROR_NAME.fullmatch(said) else ""
        return f"the claim {self._claim} cannot be used: {_WORDS.get(word, f'its file system reports {word or code}')}"

    def _unknown(self) -> str:
        return f"the pod that mounts the claim {self._claim} sent an invalid response"


async def _short(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Reads a short body; raises `StoreError` for a longer one, because users of the namespace can replace the program."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > most:
            raise StoreError("the pod that mounts the claim sent a response that is too long")
    return bytes(body)


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")
