"""`DebianArchive`: the packages of a Debian suite, verified from the archive's keys down to each file."""

from __future__ import annotations

import asyncio
import lzma
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch._base.tasks import AsyncCloseable
from navarch.errors import ImageError
from navarch.project.image.debian.apt_configuration import AptConfiguration, read_apt_configuration
from navarch.project.image.debian.base_packages import DEFAULT_SUITE
from navarch.project.image.debian.downloads import Downloads
from navarch.project.image.debian.mirrors import Mirrors, Proxies, choose_mirrors, shown
from navarch.project.image.debian.package_index import DebianPackage, PackageIndex
from navarch.project.image.debian.release import SuiteRelease, archive_keys, verify_release
from navarch.project.image.debian.resolution import resolve_packages

T = TypeVar("T")
ARCHITECTURES: Final = ("amd64", "arm64")
Progress = Callable[[int, int], None]
"""Called with the bytes that are there, and those that all packages have."""
_LARGEST_RELEASE: Final = 8 * 2**20
_LARGEST_INDEX: Final = 2**29
_AT_ONCE: Final = 8
_SECURITY_POOL: Final = "pool/updates/"
_CHUNK: Final = 2**20


class DebianOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where packages come from, and what is trusted."""

    suite: str = DEFAULT_SUITE
    mirror: str | None = None
    """By default apt's own, else Debian's."""
    security_mirror: str | None = None
    """`none` leaves out security updates."""
    keyring: Path | None = None
    """Keys of a private mirror, instead of Debian's."""
    proxy: str | None = None
    """By default apt's, else that of `http_proxy` and the like."""
    expired: bool = False
    """Whether a release that is no longer valid will do, as archives of old releases have it."""


class DebianArchive(AsyncCloseable):
    """Resolves names to packages, and fetches packages. Use it with `async with`.

    `cache` is a folder for downloads, by digest; removing it costs time alone.
    """

    def __init__(
        self,
        options: DebianOptions,
        cache: Path,
        *,
        clock: Clock | None = None,
        apt: AptConfiguration | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        configured = read_apt_configuration() if apt is None else apt
        self.mirrors: Final[Mirrors] = choose_mirrors(options.mirror, options.security_mirror, configured)
        proxies = Proxies(option=options.proxy, apt=configured, environment=dict(environment))
        self._downloads = Downloads(cache, proxies, self._clock)

    async def __aenter__(self) -> Self:
        await self._downloads.__aenter__()
        return self

    async def close(self) -> None:
        await self._downloads.close()

    async def resolve(self, names: Iterable[str], architecture: str) -> tuple[DebianPackage, ...]:
        """Returns the packages of these names with all that they depend on, in the order of their names.

        Raises `ImageError` for an index that Debian's keys do not vouch for, that has expired or is of another suite, and
        for packages that the suite does not have.
        """
        if architecture not in ARCHITECTURES:
            raise ImageError(f"expected an architecture of {', '.join(ARCHITECTURES)}, got {architecture!r}")
        keys = await asyncio.to_thread(archive_keys, self._options.keyring)

        async def packages_of(mirror: str, suite: str) -> tuple[str, bytes]:
            where = f"{mirror}/dists/{suite}"
            content = await self._downloads.read(f"{where}/InRelease", largest=_LARGEST_RELEASE)
            if content is None:
                raise ImageError(
                    f"{shown(where)}: expected the suite {suite}, got none; name another --mirror or suite"
                )
            now = None if self._options.expired else self._clock.now()
            named = f"{shown(where)}/InRelease"
            release = await asyncio.to_thread(verify_release, content, keys, suite=suite, now=now, where=named)
            return shown(where), await self._packages_file(where, release, architecture)

        suites = self._suites()
        contents = await _unless_one_fails([partial(packages_of, *each) for each in suites])
        return await asyncio.to_thread(lambda: resolve_packages(PackageIndex(architecture, contents), names))

    async def fetch(self, packages: Iterable[DebianPackage], progress: Progress | None = None) -> list[Path]:
        """Returns the files of the packages, in their order, each with the digest that the package names.

        Raises `ImageError` for a package that no mirror has, or that is another one than named.
        """
        wanted = list(packages)
        total = sum(each.size for each in wanted)
        there = dict.fromkeys(wanted, 0)

        async def fetched(package: DebianPackage) -> Path:
            def received(count: int) -> None:
                there[package] = count
                if progress is not None:
                    progress(sum(there.values()), total)

            return await self._fetch(package, received)

        return await _unless_one_fails([partial(fetched, each) for each in wanted])

    async def _fetch(self, package: DebianPackage, received: Callable[[int], None]) -> Path:
        name = f"the Debian package {package.name} {package.version}"
        mirrors = self._mirrors_for(package)
        for mirror in mirrors:
            found = await self._downloads.fetch(
                f"{mirror}/{package.path}", sha256=package.sha256, size=package.size, name=name, received=received
            )
            if found is not None:
                return found
        raise ImageError(
            f"{name}: expected {package.path} on {' or '.join(map(shown, mirrors))}, got 404: a newer version has replaced "
            f"it; run `navarch image lock` again, or name an archive of old versions: --mirror "
            f"https://snapshot.debian.org/archive/debian/DATE"
        )

    def _suites(self) -> list[tuple[str, str]]:
        """Returns the addresses and names of the suites that belong together."""
        main, suite = self.mirrors.main, self._options.suite
        suites = [(main, suite), (main, f"{suite}-updates")]
        return suites if self.mirrors.security is None else [*suites, (self.mirrors.security, f"{suite}-security")]

    def _mirrors_for(self, package: DebianPackage) -> list[str]:
        """Returns both mirrors, the one first that should have the package."""
        main, security = self.mirrors.main, self.mirrors.security
        if security is None:
            return [main]
        return [security, main] if package.path.startswith(_SECURITY_POOL) else [main, security]

    async def _packages_file(self, where: str, release: SuiteRelease, architecture: str) -> bytes:
        """Returns the list of packages that the release vouches for."""
        path = f"main/binary-{architecture}/Packages"
        listed = release.file(f"{path}.xz", where=shown(where))
        folder = path.rpartition("/")[0]
        url = f"{where}/{folder}/by-hash/SHA256/{listed.sha256}" if release.by_hash else f"{where}/{listed.path}"
        name = f"{shown(where)}/{listed.path}"
        found = await self._downloads.fetch(url, sha256=listed.sha256, size=listed.size, name=name)
        if found is None:
            raise ImageError(
                f"{name}: expected the list of packages, got 404; the mirror may be in the middle of an update"
            )
        whole = release.files.get(path)
        return await asyncio.to_thread(_decompressed, found, whole.size if whole is not None else _LARGEST_INDEX, name)


async def _unless_one_fails(work: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """Returns the results in order. The first error ends the others: a mirror that is away would fail for each file."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(each: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with turn:
            return await each()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(each)) for each in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _decompressed(file: Path, largest: int, name: str) -> bytes:
    if largest > _LARGEST_INDEX:
        raise ImageError(f"{name}: expected at most {_LARGEST_INDEX} bytes, got {largest}")
    content = bytearray()
    try:
        with lzma.open(file) as packed:
            while chunk := packed.read(_CHUNK):
                content += chunk
                if len(content) > largest:
                    raise ImageError(f"{name}: expected {largest} bytes when unpacked, got more")
    except (lzma.LZMAError, EOFError) as error:
        raise ImageError(f"{name}: expected a file packed with xz, got another: {error}") from None
    return bytes(content)
