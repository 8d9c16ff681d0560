"""`serve`: a small OCI registry on loopback, stored in a folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from navarch._base.clock import Clock, SystemClock
from navarch.errors import ConfigError
from navarch.oci.registry_server.folder import RegistryFolder
from navarch.oci.registry_server.handlers import RegistryHandlers
from navarch.oci.registry_server.uploads import BlobUploads

_SHUTDOWN_SECONDS: Final = 1.0


class RegistryServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a registry listens, and what it accepts."""

    host: str = "127.0.0.1"
    """It has no users and no TLS: whoever reaches the address can push."""
    port: int = 0
    largest_blob: int = 16 * 2**30
    uploads: int = 64
    """How many uploads may be open at once."""
    clock: Clock = msgspec.field(default_factory=SystemClock)


@asynccontextmanager
async def serve(folder: Path, options: RegistryServerOptions | None = None) -> AsyncIterator[str]:
    """Serves the registry in that folder inside the block, and yields its address, `127.0.0.1:5000`.

    Raises `ConfigError` if the folder or the port cannot be used.
    """
    options = options or RegistryServerOptions()
    with RegistryFolder.opened(folder) as opened:
        uploads = BlobUploads(opened, options.uploads, options.clock)
        app = RegistryHandlers(opened, uploads, options.largest_blob).application()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, options.host, options.port).start()
            except OSError as error:
                raise ConfigError(
                    f"expected to listen at {options.host}:{options.port}, got: {error.strerror or error}; "
                    "choose another port"
                ) from error
            host = f"[{options.host}]" if ":" in options.host else options.host
            yield f"{host}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@contextmanager
def serve_in_thread(folder: Path, options: RegistryServerOptions | None = None) -> Iterator[str]:
    """Does the same from a thread of its own, for programs and tests without an event loop."""
    address: Future[str] = Future()
    stop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        async with serve(folder, options) as found:
            ended = asyncio.Event()
            stop.set_result((asyncio.get_running_loop(), ended))
            address.set_result(found)
            await ended.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if address.done():
                raise
            address.set_exception(error)

    thread = threading.Thread(target=work, name="navarch-registry", daemon=True)
    thread.start()
    try:
        yield address.result()
    finally:
        if stop.done():
            loop, ended = stop.result()
            loop.call_soon_threadsafe(ended.set)
        thread.join()
