"""A store that speaks enough of S3, and can be told to misbehave."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web
from aiohttp.test_utils import TestServer

from etcd_operator.backup import S3Source
from navarch.k8s.core.v1 import Secret

KEY, SECRET = "AKIDEXAMPLE", "not-to-be-told"


@dataclass
class ObjectStore:
    """Objects by `bucket/name`. `refuse` answers writes with that code; `cut` keeps only so many bytes of each."""

    objects: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    refuse: int = 0
    cut: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if f"Credential={KEY}/" not in request.headers.get("Authorization", ""):
            return web.Response(status=403, text=f"<Error><Code>AccessDenied</Code><Message>{SECRET}</Message></Error>")
        name = unquote(request.path).lstrip("/")
        match request.method:
            case "PUT":
                return await self._put(request, name)
            case "POST" if "delete" in request.query:
                return self._delete(name, await request.text())
            case _ if "list-type" in request.query:
                return self._list(name, request.query.get("prefix", ""))
            case _:
                return self._get(name)

    async def _put(self, request: web.Request, name: str) -> web.Response:
        if self.refuse:
            return web.Response(status=self.refuse, text=f"<Error><Message>{SECRET}</Message></Error>")
        source = request.headers.get("x-amz-copy-source")
        if source:
            self.objects[name] = self.objects[unquote(source).lstrip("/")]
            return web.Response(text="<CopyObjectResult><ETag>&quot;1&quot;</ETag></CopyObjectResult>")
        content = await request.read()
        self.objects[name] = content[: self.cut] if self.cut else content
        return web.Response(headers={"ETag": '"1"'})

    def _delete(self, bucket: str, asked: str) -> web.Response:
        names = re.findall("<Key>(.*?)</Key>", asked)
        for name in names:
            self.objects.pop(f"{bucket.rstrip('/')}/{name}", None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        return web.Response(text=f'<?xml version="1.0"?><DeleteResult>{deleted}</DeleteResult>')

    def _get(self, name: str) -> web.Response:
        if name not in self.objects:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        headers = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        return web.Response(body=self.objects[name], headers=headers)

    def _list(self, bucket: str, prefix: str) -> web.Response:
        names = (name.removeprefix(f"{bucket.rstrip('/')}/") for name in sorted(self.objects))
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>1</Size><ETag>1</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in names
            if name.startswith(prefix)
        )
        head = '<?xml version="1.0"?><ListBucketResult>'
        return web.Response(text=f"{head}<IsTruncated>false</IsTruncated>{found}</ListBucketResult>")


@asynccontextmanager
async def object_store() -> AsyncIterator[ObjectStore]:
    """Serves while the block lasts."""
    store = ObjectStore()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{name:.*}", store.answer)
    async with TestServer(app) as server:
        store.url = str(server.make_url("")).rstrip("/")
        yield store


def s3(store: ObjectStore) -> S3Source:
    """An object in it."""
    return S3Source(path="bucket/some/etcd.db", aws_secret="aws", endpoint=store.url)


def secret(key: str = KEY) -> Secret:
    """What it takes, or does not take."""
    message = f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {SECRET}\n"
    return Secret(name="aws", data={"credentials": message.encode(), "config": b"[default]\nregion = us-east-1\n"})
