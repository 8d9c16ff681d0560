"""A small Debian archive: packages that are packed by hand, signed with a key of the test, served on loopback."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer
from pysequoia import SignatureMode, Tsk, sign

from navarch._base.clock import ManualClock
from navarch.project.image.debian.apt_configuration import AptConfiguration
from navarch.project.image.debian.archive import DebianArchive, DebianOptions

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NO_APT = AptConfiguration()
Files = Mapping[str, bytes | str | tarfile.TarInfo]
"""What a tar archive has: files of bytes, links of text, and members as they are."""


class HurriedClock(ManualClock):
    """A clock whose sleepers wake at once, at the time that they wanted."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._elapsed += max(seconds, 0)


def tar(files: Files) -> bytes:
    """Returns a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(f"./{path}")
            member.mode = 0o755 if "/bin/" in path else 0o644
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def ar(members: Mapping[str, bytes]) -> bytes:
    """Returns an ar archive, as `.deb` files are."""
    packed = b"!<arch>\n"
    for name, content in members.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        packed += b"\n" * (len(content) % 2)
    return packed


def deb(
    name: str,
    version: str = "1.0-1",
    *,
    architecture: str = "amd64",
    files: Files | None = None,
    **fields: str,
) -> bytes:
    """Returns a package; fields such as `Pre_Depends` go into its control file."""
    data = dict(files or {})
    others = "".join(f"{field.replace('_', '-')}: {value}\n" for field, value in fields.items())
    control = f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n{others}"
    sums = "".join(
        f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in data.items() if isinstance(content, bytes)
    )
    about = tar({"control": control.encode(), "md5sums": sums.encode(), "postinst": b"#!/bin/sh\nexit 1\n"})
    return ar(
        {"debian-binary": b"2.0\n", "control.tar.xz": lzma.compress(about), "data.tar.xz": lzma.compress(tar(data))}
    )


class SmallArchive:
    """An archive with the suites `small`, `small-updates` and `small-security`, as files by their paths."""

    def __init__(self, *, by_hash: bool = True) -> None:
        self.key = Tsk.generate("archive <archive@example.com>")
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[int]] = {}
        """By path: statuses to answer with before the file; a number below 100 ends the connection after so many bytes."""
        self.requests: list[tuple[str, str]] = []
        self._by_hash = by_hash
        self._packages: dict[str, list[str]] = {"small": [], "small-updates": [], "small-security": []}

    def add(
        self, name: str, version: str = "1.0-1", *, suite: str = "small", architecture: str = "amd64", **fields: str
    ) -> str:
        """Adds a package and returns its path."""
        content = deb(name, version, architecture=architecture, files=None, **fields)
        folder = "pool/updates/main" if suite.endswith("-security") else "pool/main"
        path = f"{folder}/{name[0]}/{name}/{name}_{version.replace(':', '%3a')}_{architecture}.deb"
        self.files[path] = content
        others = "".join(f"{field.replace('_', '-')}: {value}\n" for field, value in fields.items())
        self._packages[suite].append(
            f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n{others}"
            f"Filename: {path}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
        return path

    def publish(self) -> None:
        """Writes the lists of packages and signs them."""
        for suite in self._packages:
            self.publish_suite(suite)

    def publish_suite(self, suite: str, *, codename: str | None = None, valid: timedelta = timedelta(days=7)) -> None:
        lines = []
        for architecture in ("amd64", "arm64"):
            wanted = {f"Architecture: {each}" for each in (architecture, "all")}
            found = [each for each in self._packages[suite] if wanted & set(each.splitlines())]
            plain = "\n".join(found).encode()
            folder = f"main/binary-{architecture}"
            for name, content in (("Packages", plain), ("Packages.xz", lzma.compress(plain))):
                digest = hashlib.sha256(content).hexdigest()
                lines.append(f" {digest} {len(content):>8} {folder}/{name}")
                path = f"{folder}/by-hash/SHA256/{digest}" if self._by_hash else f"{folder}/{name}"
                self.files[f"dists/{suite}/{path}"] = content
        head = (
            f"Origin: Small\nSuite: {codename or suite}\nCodename: {codename or suite}\nDate: {format_datetime(NOW)}\n"
        )
        head += f"Valid-Until: {format_datetime(NOW + valid)}\n" + ("Acquire-By-Hash: yes\n" if self._by_hash else "")
        self.files[f"dists/{suite}/InRelease"] = self.signed((head + "SHA256:\n" + "\n".join(lines) + "\n").encode())

    def signed(self, text: bytes) -> bytes:
        return bytes(sign(self.key.signer(), text, mode=SignatureMode.CLEAR))

    def change(self, ending: str, old: bytes, new: bytes) -> None:
        """Replaces bytes in the one file whose path ends so."""
        (path,) = [path for path in self.files if path.endswith(ending)]
        assert old in self.files[path]
        self.files[path] = self.files[path].replace(old, new)

    @asynccontextmanager
    async def open(
        self, folder: Path, *, clock: HurriedClock | None = None, through_proxy: bool = False, **options: object
    ) -> AsyncIterator[DebianArchive]:
        """Serves the archive and yields the client, which keeps its files in the folder; the server is a proxy, too."""
        keyring = folder / "keyring.gpg"
        keyring.write_bytes(bytes(self.key.extract_certificate()))
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        async with TestServer(app, skip_url_asserts=True) as server:
            mirror = "http://mirror.example.com/debian" if through_proxy else str(server.make_url("/debian"))
            proxy = str(server.make_url("/")) if through_proxy else None
            chosen = {"suite": "small", "mirror": mirror, "security_mirror": mirror, "proxy": proxy, "keyring": keyring}
            archive = DebianArchive(
                DebianOptions(**{**chosen, **options}),  # type: ignore[arg-type]
                folder / "cache",
                clock=clock or HurriedClock(),
                apt=NO_APT,
                environment={},
            )
            async with archive:
                yield archive

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.partition("/debian/")[2]
        self.requests.append((path, request.headers.get("Range", "")))
        content = self.files.get(path)
        if content is None:
            return web.Response(status=404)
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        fault = self.faults[path].pop(0) if self.faults.get(path) else None
        if fault is None:
            return web.Response(status=206 if start else 200, body=content[start:], headers=headers)
        if fault >= 100:
            return web.Response(status=fault)
        headers["Content-Length"] = str(len(content) - start)
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        await response.write(content[start : start + fault])
        assert request.transport is not None
        request.transport.close()
        return response
