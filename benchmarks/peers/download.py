"""The bare download: the same pages over the same HTTP library, and nothing made of them."""

import time

import aiohttp
import uvloop

from navarch import load
from peers import work
from widgets import GROUP, NAMESPACE, PLURAL, VERSION


async def main() -> None:
    config = load()
    headers = {"Authorization": f"Bearer {config.token}", "Accept-Encoding": "gzip"}
    connector = aiohttp.TCPConnector(ssl=config.ssl_context() or True)
    async with aiohttp.ClientSession(connector=connector, headers=headers, read_bufsize=2**20) as session:
        began, size, token = time.perf_counter(), 0, ""
        while True:
            path = f"{config.server}/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"
            async with session.get(path, params={"limit": "500", "continue": token}) as response:
                body = await response.read()
            size += len(body)
            token = next_token(body)
            if not token:
                break
        work.report(began, size)


def next_token(body: bytes) -> str:
    """The continue token stands at the end of a page; the rest is not looked at."""
    _, mark, rest = body[-2000:].partition(b'"continue":"')
    return rest.partition(b'"')[0].decode() if mark else ""


uvloop.run(main())
