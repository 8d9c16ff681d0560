"""Stores that speak enough of Google's and of Azure's protocol, and can be told to misbehave."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from navarch.k8s.core.v1 import Secret

TOKEN = "not-to-be-told"
EMAIL = "backups@project.iam.gserviceaccount.com"
ACCOUNT, KEY = "account", base64.b64encode(b"not-to-be-told-either").decode()
_DATES = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}


@dataclass
class Store:
    """Objects by `bucket/name`. `refuse` answers writes with that code; `cut` keeps only so many bytes of each, and
    `cut_copies` of each copy.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    refuse: int = 0
    cut: int = 0
    cut_copies: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if not self.knows(request.headers.get("Authorization", "")):
            return web.Response(status=403, text=f"<Error><Message>{TOKEN} {KEY}</Message></Error>")
        name = unquote(request.path).lstrip("/")
        if request.method == "PUT":
            return await self._put(request, name)
        if request.method == "DELETE":
            self.objects.pop(name, None)
            return web.Response(status=204)
        if request.method == "POST":
            return self.batch(await request.text())
        if "prefix" in request.query or "list-type" in request.query or "comp" in request.query:
            return web.Response(text=self.listed(name.rstrip("/"), request.query.get("prefix", "")))
        return self._get(name)

    def knows(self, authorization: str) -> bool:
        raise NotImplementedError

    def copied_from(self, request: web.Request) -> str:
        raise NotImplementedError

    def listed(self, bucket: str, prefix: str) -> str:
        raise NotImplementedError

    def batch(self, asked: str) -> web.Response:
        raise NotImplementedError

    async def _put(self, request: web.Request, name: str) -> web.Response:
        if self.refuse:
            return web.Response(status=self.refuse, text=f"<Error><Message>{TOKEN} {KEY}</Message></Error>")
        source = self.copied_from(request)
        content = self.objects[source] if source else await request.read()
        cut = self.cut_copies if source else self.cut
        self.objects[name] = content[:cut] if cut else content
        return web.Response(status=201, headers=_DATES)

    def _get(self, name: str) -> web.Response:
        if name not in self.objects:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        return web.Response(body=self.objects[name], headers=_DATES)

    def names(self, bucket: str, prefix: str) -> list[str]:
        inside = (name.removeprefix(f"{bucket}/") for name in sorted(self.objects) if name.startswith(f"{bucket}/"))
        return [escape(name) for name in inside if name.startswith(prefix)]


class Google(Store):
    """As storage.googleapis.com. A service account signs for itself; its name is enough here."""

    def knows(self, authorization: str) -> bool:
        _, _, token = authorization.partition(" ")
        parts = token.split(".")
        signed = base64.urlsafe_b64decode(parts[1] + "==") if len(parts) == 3 else b""
        return token == TOKEN or EMAIL.encode() in signed

    def copied_from(self, request: web.Request) -> str:
        return unquote(request.headers.get("x-goog-copy-source", "")).lstrip("/")

    def listed(self, bucket: str, prefix: str) -> str:
        found = "".join(
            f"<Contents><Key>{name}</Key><Size>1</Size><ETag>1</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in self.names(bucket, prefix)
        )
        return f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>'


class Azure(Store):
    """As blob.core.windows.net."""

    def knows(self, authorization: str) -> bool:
        return authorization.startswith(f"SharedKey {ACCOUNT}:")

    def copied_from(self, request: web.Request) -> str:
        return unquote(urlsplit(request.headers.get("x-ms-copy-source", "")).path).lstrip("/")

    def listed(self, bucket: str, prefix: str) -> str:
        found = "".join(
            f"<Blob><Name>{name}</Name><Properties><Last-Modified>Mon, 01 Jan 2024 00:00:00 GMT</Last-Modified>"
            "<Content-Length>1</Content-Length><Content-Type>application/octet-stream</Content-Type><Etag>1</Etag>"
            "</Properties></Blob>"
            for name in self.names(bucket, prefix)
        )
        return f'<?xml version="1.0"?><EnumerationResults><Blobs>{found}</Blobs><NextMarker/></EnumerationResults>'

    def batch(self, asked: str) -> web.Response:
        """Deletes as many as are named, each in a part of its own."""
        parts = []
        for number, path in enumerate(re.findall(r"DELETE (\S+) HTTP", asked)):
            self.objects.pop(unquote(urlsplit(path).path).lstrip("/"), None)
            parts.append(
                f"--b\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"
            )
        body = "".join(parts) + "--b--\r\n"
        return web.Response(status=202, body=body.encode(), headers={"Content-Type": "multipart/mixed; boundary=b"})


@asynccontextmanager
async def serving(store: Store) -> AsyncIterator[None]:
    """While the block lasts, at `store.url`."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{name:.*}", store.answer)
    async with TestServer(app) as server:
        store.url = str(server.make_url("")).rstrip("/")
        yield


def service_account() -> Secret:
    """With a key of its own, as Google hands it out."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    fields = {"type": "service_account", "client_email": EMAIL, "private_key": pem, "private_key_id": "1"}
    return Secret(name="keys", data={"credentials.json": json.dumps(fields).encode()})


def secret(name: str, **data: str) -> Secret:
    """With these fields, whose dashes are underscores here."""
    return Secret(name=name, data={key.replace("_", "-"): value.encode() for key, value in data.items()})
