"""An archive is trusted from its keys down to each package, and a mirror that fails is asked again."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
from datetime import timedelta
from pathlib import Path

import pytest
from pysequoia import Tsk

from navarch.errors import ImageError
from navarch.project.image.debian import DebianPackage, downloads
from navarch.project.image.debian.archive import DebianArchive, DebianOptions
from navarch.project.image.debian.release import archive_keys
from project.image.debian_archive import NO_APT, HurriedClock, SmallArchive


@pytest.fixture
def small() -> SmallArchive:
    """An archive with an application, its library, and a security update of that."""
    archive = SmallArchive()
    archive.add("app", Depends="liba (>= 1.0)")
    archive.add("liba", "1.0-1")
    archive.add("liba", "1.0-1+u1", suite="small-security")
    archive.add("app", "2.0-1", architecture="arm64")
    archive.publish()
    return archive


async def test_archive_resolves_and_fetches_packages(small: SmallArchive, tmp_path: Path) -> None:
    """Names become packages with paths and digests, packages become files with these digests."""
    progress: list[tuple[int, int]] = []
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        files = await archive.fetch(packages, lambda done, total: progress.append((done, total)))
        (arm64,) = await archive.resolve(["app"], "arm64")
    assert [(each.name, each.version) for each in packages] == [("app", "1.0-1"), ("liba", "1.0-1+u1")]
    assert arm64.version == "2.0-1"
    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in files] == [each.sha256 for each in packages]
    assert progress[-1] == (sum(each.size for each in packages),) * 2


async def test_archive_keeps_packages_and_verifies_them_again(small: SmallArchive, tmp_path: Path) -> None:
    """A second fetch asks no mirror, unless somebody has changed a kept file."""
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        first, second = await archive.fetch(packages)
        small.requests.clear()
        assert await archive.fetch(packages) == [first, second]
        assert small.requests == []
        first.write_bytes(b"other")
        assert await archive.fetch(packages) == [first, second]
        assert [path for path, _ in small.requests] == [packages[0].path]
    assert hashlib.sha256(first.read_bytes()).hexdigest() == packages[0].sha256


async def test_archive_without_by_hash_is_read_by_name(tmp_path: Path) -> None:
    """A private mirror may have its lists under their names alone, and no security updates."""
    small = SmallArchive(by_hash=False)
    small.add("app")
    small.publish()
    async with small.open(tmp_path, security_mirror="none") as archive:
        assert [each.name for each in await archive.resolve(["app"], "amd64")] == ["app"]
    assert not any("small-security" in path for path, _ in small.requests)


async def test_archive_is_reached_through_a_proxy(small: SmallArchive, tmp_path: Path) -> None:
    """The mirror has a name that only the proxy knows."""
    async with small.open(tmp_path, through_proxy=True) as archive:
        packages = await archive.resolve(["app"], "amd64")
        assert len(await archive.fetch(packages)) == 2
    assert archive.mirrors.main == "http://mirror.example.com/debian"


async def _refused(small: SmallArchive, folder: Path, expected: str, **options: object) -> None:
    async with small.open(folder, clock=None, through_proxy=False, **options) as archive:
        with pytest.raises(ImageError, match=expected) as caught:
            await archive.resolve(["app"], "amd64")
    assert "\n" not in str(caught.value)


async def test_tampered_release_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """A change inside the signed text breaks the signature."""
    small.change("small/InRelease", b"Origin: Small", b"Origin: Other")
    await _refused(small, tmp_path, "small/InRelease: expected a signature of a trusted key, got none that is valid")


async def test_text_around_the_signed_text_is_ignored(small: SmallArchive, tmp_path: Path) -> None:
    """Only what the signature covers counts, wherever an attacker adds lines."""
    path = "dists/small/InRelease"
    small.files[path] = b"SHA256:\n bad\n\n" + small.files[path] + b"\nSHA256:\n bad\n"
    async with small.open(tmp_path) as archive:
        assert len(await archive.resolve(["app"], "amd64")) == 2


async def test_release_of_another_key_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """A signature is worth something only if its key is in the keyring; Debian's keys are the default."""
    other = tmp_path / "other.gpg"
    other.write_bytes(bytes(Tsk.generate("other <other@example.com>").extract_certificate()))
    await _refused(small, tmp_path, "expected a signature of a trusted key", keyring=other)
    await _refused(small, tmp_path, "expected a signature of a trusted key.*--keyring", keyring=None)


async def test_release_without_a_signature_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """Plain text is not trusted, nor is an empty file."""
    for content in (b"Codename: small\nSHA256:\n", b""):
        small.files["dists/small/InRelease"] = content
        await _refused(small, tmp_path, "expected a signature of a trusted key")


async def test_expired_release_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """A mirror that is held back would hide security updates; an archive of old releases is taken on request."""
    small.publish_suite("small-security", valid=timedelta(days=-1))
    await _refused(
        small, tmp_path, "small-security/InRelease: expected a release that is still valid, got .* expired at 2029"
    )
    async with small.open(tmp_path, expired=True) as archive:
        assert len(await archive.resolve(["app"], "amd64")) == 2


async def test_release_of_another_suite_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """A genuine release under another's name would take the image to other packages."""
    small.publish_suite("small", codename="ancient")
    await _refused(small, tmp_path, "expected the suite small, got ancient")


async def test_missing_suite_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """No suite is left out in silence, the security updates least of all."""
    del small.files["dists/small-security/InRelease"]
    await _refused(small, tmp_path, "dists/small-security: expected the suite small-security, got none")


@pytest.mark.parametrize("by_hash", [True, False])
async def test_tampered_list_of_packages_is_refused(tmp_path: Path, *, by_hash: bool) -> None:
    """A list that is not the signed one is an error with both digests."""
    small = SmallArchive(by_hash=by_hash)
    small.add("app")
    small.publish()
    for path in [path for path in small.files if "/main/binary-amd64/" in path]:
        content = small.files[path]
        small.files[path] = content[:-5] + bytes([content[-5] ^ 1]) + content[-4:] if content else b""
    await _refused(small, tmp_path, r"Packages.xz: expected the SHA-256 [0-9a-f]{64}, got [0-9a-f]{64} from http")


async def test_list_of_packages_of_another_size_is_refused(small: SmallArchive, tmp_path: Path) -> None:
    """A mirror that sends without end is left as soon as it has sent too much."""
    for path in [each for each in small.files if each.startswith("dists/small/main/binary-amd64/")]:
        small.files[path] += b"x" * 1000
    await _refused(small, tmp_path, r"expected \d+ bytes, got more")


async def test_tampered_package_is_refused_by_name(small: SmallArchive, tmp_path: Path) -> None:
    """The error names the package, the digest of the lock and what came; nothing of it is kept."""
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        content = small.files[packages[0].path]
        small.files[packages[0].path] = content[:-1] + bytes([content[-1] ^ 1])
        expected = rf"the Debian package app 1.0-1: expected the SHA-256 {packages[0].sha256}, got [0-9a-f]{{64}}"
        with pytest.raises(ImageError, match=expected):
            await archive.fetch(packages)
        small.files[packages[0].path] = content
        assert (await archive.fetch(packages))[0].read_bytes() == content


async def test_replaced_package_is_reported_with_the_remedy(small: SmallArchive, tmp_path: Path) -> None:
    """A point release removes old versions from mirrors: lock again, or take an archive that keeps them."""
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        del small.files[packages[0].path]
        with pytest.raises(
            ImageError, match=r"app 1.0-1: expected pool/.* got 404.*navarch image lock.*--mirror .*snapshot"
        ):
            await archive.fetch(packages)


async def test_interrupted_download_continues_where_it_ended(small: SmallArchive, tmp_path: Path) -> None:
    """What has arrived is kept, also for a later process; only the rest is fetched."""
    clock = HurriedClock()
    async with small.open(tmp_path, clock=clock) as archive:
        packages = await archive.resolve(["app"], "amd64")
        path = packages[0].path
        small.faults[path] = [50, 503, 60]
        files = await archive.fetch(packages)
        assert [asked for requested, asked in small.requests if requested == path] == [
            "",
            "bytes=50-",
            "bytes=50-",
            "bytes=110-",
        ]
        assert files[0].read_bytes() == small.files[path]
        assert len(clock.slept) == 3
        files[0].unlink()
        small.faults[path] = [30, 10, 10, 10]
        with pytest.raises(ImageError, match="got no whole answer in 4 attempts"):
            await archive.fetch(packages)
    small.requests.clear()
    async with small.open(tmp_path) as archive:
        assert (await archive.fetch(packages))[0].read_bytes() == small.files[path]
    assert small.requests == [(path, "bytes=60-")]


async def test_builds_that_fetch_the_same_package_do_not_disturb_each_other(
    small: SmallArchive, tmp_path: Path
) -> None:
    """Each has a file of its own to write; the cache has the package once, and nothing unfinished."""
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        fetched = await asyncio.gather(*(archive.fetch(packages) for _ in range(4)))
    assert all(files == fetched[0] for files in fetched)
    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in fetched[0]] == [each.sha256 for each in packages]
    assert list((tmp_path / "cache").rglob("*.part")) == []


async def test_unfinished_download_of_other_bytes_is_begun_again(small: SmallArchive, tmp_path: Path) -> None:
    """A rest that does not fit to what is there is no reason to give up."""
    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        part = tmp_path / "cache" / "sha256" / f"{packages[0].sha256}.part"
        part.write_bytes(b"other")
        assert (await archive.fetch(packages))[0].read_bytes() == small.files[packages[0].path]
    assert not part.exists()


async def test_full_disk_is_reported(small: SmallArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the folder and what the system says."""

    class FullDisk(io.BytesIO):
        def write(self, content: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with small.open(tmp_path) as archive:
        packages = await archive.resolve(["app"], "amd64")
        monkeypatch.setattr(downloads, "_part_of", lambda target: FullDisk())
        with pytest.raises(ImageError, match=r"cache/sha256: expected to write .* got: No space left on device"):
            await archive.fetch(packages)


async def test_cache_that_is_no_folder_is_reported(small: SmallArchive, tmp_path: Path) -> None:
    """A file where the cache should be is an error, not a traceback."""
    (tmp_path / "cache").write_text("")
    await _refused(small, tmp_path, "expected to write .* into the cache, got: Not a directory")


async def test_refusing_mirror_is_reported(small: SmallArchive, tmp_path: Path) -> None:
    """A status that no second attempt changes is reported at once."""
    clock = HurriedClock()
    small.faults["dists/small/InRelease"] = [403]
    async with small.open(tmp_path, clock=clock) as archive:
        with pytest.raises(ImageError, match="small/InRelease: expected the file, got 403 Forbidden; check --mirror"):
            await archive.resolve(["app"], "amd64")
    assert clock.slept == []


async def test_mirror_that_cannot_be_reached_is_reported(tmp_path: Path) -> None:
    """After some attempts the error names the address, without the password in it."""
    options = DebianOptions(mirror="http://user:secret@127.0.0.1:1/debian", security_mirror="none")
    clock = HurriedClock()
    async with DebianArchive(options, tmp_path, clock=clock, apt=NO_APT, environment={}) as archive:
        with pytest.raises(ImageError, match=r"http://127.0.0.1:1/debian/dists/trixie.*no whole answer") as caught:
            await archive.resolve(["app"], "amd64")
    assert "secret" not in str(caught.value)
    assert len(clock.slept) >= 3
    assert "more" not in str(caught.value)  # one error, not one for each suite


async def test_unknown_architecture_is_refused(tmp_path: Path) -> None:
    """Images are for amd64 and arm64."""
    async with DebianArchive(DebianOptions(), tmp_path, apt=NO_APT, environment={}) as archive:
        with pytest.raises(ImageError, match="expected an architecture of amd64, arm64, got 'riscv64'"):
            await archive.resolve(["app"], "riscv64")


def test_keyring_without_keys_is_refused(tmp_path: Path) -> None:
    """A file that has no keys, is something else, or is not there, would trust nothing."""
    file = tmp_path / "keys.gpg"
    for content in (None, b"", b"no keys at all, but more than a few bytes"):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ImageError, match=r"--keyring .*expected .*OpenPGP key"):
            archive_keys(file)


def test_keys_of_debian_are_in_the_package() -> None:
    """Those of Debian 12 and 13: the archive's, that of security updates, and that of the release."""
    users = [str(user) for key in archive_keys() for user in key.user_ids]
    assert len(users) == 6
    assert all("debian.org" in user for user in users)


def test_package_of_a_lock_stays_below_the_mirror() -> None:
    """A lock is somebody's text: paths that lead elsewhere are refused."""
    for path in ("../a.deb", "/etc/a.deb", "pool/../../a.deb", "https://example.com/a.deb", "pool/a.deb?x=1", "pool/a"):
        with pytest.raises(ImageError, match="expected a path below the mirror"):
            DebianPackage(name="a", version="1", architecture="all", path=path, sha256="a" * 64, size=1)
