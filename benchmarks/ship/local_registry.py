"""A registry on loopback, what is in it, and how many bytes a client sends to it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from navarch.oci.documents import Descriptor, ImageManifest, Platform
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions, pull, push


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Runs `navarch registry serve` inside the block, and yields its address."""
    command = [str(Path(sys.executable).with_name("navarch")), "registry", "serve", str(folder), "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"{' '.join(command)} ended with {process.wait(10)}")
            yield address
        finally:
            process.terminate()


def push_image(layout: Layout, image: Descriptor, name: str) -> None:
    """Pushes an image of a layout under the name."""

    async def send() -> None:
        async with RegistryClient(RegistryOptions(plain_http=True)) as client:
            await push(client, layout, image, Reference.parse(name))

    asyncio.run(send())


def packed_size(name: str, platform: str, folder: Path) -> int:
    """Returns the bytes of all layers of an image, which is pulled into the folder."""

    async def fetch() -> ImageManifest:
        layout = Layout.create(folder)
        async with RegistryClient(RegistryOptions(plain_http=True)) as client:
            found = await pull(client, Reference.parse(name), layout, Platform.parse(platform))
        return layout.image(found, Platform.parse(platform))[1]

    return sum(each.size for each in asyncio.run(fetch()).layers)


class CountedConnections:
    """Forwards connections of loopback to a registry, and counts what clients send. Used as a `with` block."""

    def __init__(self, address: str) -> None:
        self._target = address.rpartition(":")[::2]
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.sent = 0
        """The bytes that clients have sent, with the headers of requests."""
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            registry = socket.create_connection((self._target[0], int(self._target[1])))
            for source, sink, is_counted in ((client, registry, True), (registry, client, False)):
                threading.Thread(target=self._forward, args=(source, sink, is_counted), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_counted: bool) -> None:
        try:
            while data := source.recv(2**16):
                if is_counted:
                    with self._lock:
                        self.sent += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
