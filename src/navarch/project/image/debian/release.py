"""Releases: the signed file `InRelease` of a suite, which vouches for the suite's lists of packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
import pysequoia

from navarch.errors import ImageError
from navarch.project.image.debian.control import parse_paragraph

_KEYS: Final = "archive-keys.gpg"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NOT_DEBIAN: Final = "another --mirror, or --keyring with the keys of a private mirror"


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a release vouches for."""

    path: str
    """Below the folder of the suite: main/binary-amd64/Packages.xz."""
    sha256: str
    size: int


class SuiteRelease(msgspec.Struct, frozen=True, kw_only=True):
    """What a verified release says."""

    suite: str
    by_hash: bool
    """Whether the mirror has each file under its digest too, where no later release replaces it."""
    files: dict[str, ListedFile]

    def file(self, path: str, *, where: str) -> ListedFile:
        """Returns the file of that path; raises `ImageError` if the release does not list it."""
        if path not in self.files:
            raise ImageError(
                f"{where}: expected {path} in the list of files, got none; does the suite have that architecture?"
            )
        return self.files[path]


def archive_keys(keyring: Path | None = None) -> list[pysequoia.Cert]:
    """Returns the keys of a keyring, armored or not; by default Debian's own.

    Raises `ImageError` for a file without keys.
    """
    try:
        content = keyring.read_bytes() if keyring is not None else files(__package__).joinpath(_KEYS).read_bytes()
        found = pysequoia.Cert.split_bytes(content)
    except OSError as error:
        raise ImageError(
            f"--keyring {keyring}: expected a file with OpenPGP keys, got none: {error.strerror}"
        ) from None
    except RuntimeError as error:
        raise ImageError(f"--keyring {keyring}: expected OpenPGP keys, got other content: {_summary(error)}") from None
    if not found:
        raise ImageError(f"--keyring {keyring}: expected at least one OpenPGP key, got none")
    return found


def verify_release(
    content: bytes, keys: Sequence[pysequoia.Cert], *, suite: str, now: datetime | None, where: str
) -> SuiteRelease:
    """Returns the release if one of the keys has signed it, and if it is of the suite.

    Raises `ImageError` otherwise, and for a release that has expired at `now`; with None, no release is too old, as an
    archive of old releases needs it.
    """
    fields = parse_paragraph(_signed_text(content, keys, where), where=where)
    _check_suite(fields, suite, where)
    if now is not None:
        _check_dates(fields, now, where)
    listed = [_listed(line, where) for line in fields.get("SHA256", "").splitlines() if line]
    if not listed:
        raise ImageError(f"{where}: expected SHA256 digests of the suite's files, got none")
    by_hash = fields.get("Acquire-By-Hash", "no").lower() == "yes"
    return SuiteRelease(suite=suite, by_hash=by_hash, files={each.path: each for each in listed})


def _signed_text(content: bytes, keys: Sequence[pysequoia.Cert], where: str) -> str:
    """Returns the text that the signature covers: what surrounds it in the file is nobody's."""
    try:
        verified = pysequoia.verify(bytes=content, store=lambda _: list(keys))
    except RuntimeError as error:
        raise ImageError(
            f"{where}: expected a signature of a trusted key, got none that is valid: {_summary(error)}; name {_NOT_DEBIAN}"
        ) from None
    if not verified.valid_sigs or verified.bytes is None:
        raise ImageError(f"{where}: expected a signature of a trusted key, got none; name {_NOT_DEBIAN}")
    try:
        return bytes(verified.bytes).decode()
    except UnicodeDecodeError:
        raise ImageError(f"{where}: expected text in UTF-8, got other bytes") from None


def _summary(error: RuntimeError) -> str:
    """Returns the first line: a trace of sequoia's own code follows it."""
    return str(error).partition("\n")[0].rstrip(".")


def _check_suite(fields: dict[str, str], suite: str, where: str) -> None:
    found = (fields.get("Codename", ""), fields.get("Suite", ""))
    if suite not in found:
        raise ImageError(f"{where}: expected the suite {suite}, got {' or '.join(filter(None, found)) or 'none'}")


def _check_dates(fields: dict[str, str], now: datetime, where: str) -> None:
    if "Valid-Until" not in fields:
        return  # releases that change only with a point release have none
    expires = _date(fields["Valid-Until"], where)
    if expires < now:
        raise ImageError(
            f"{where}: expected a release that is still valid, got one that expired at {expires:%Y-%m-%d %H:%M} UTC, now "
            f"is {now:%Y-%m-%d %H:%M}: the mirror is no longer updated, or this machine's clock is wrong; name another "
            f"--mirror"
        )


def _date(text: str, where: str) -> datetime:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        raise ImageError(f"{where}: expected a date, got {text[:80]!r}") from None
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _listed(line: str, where: str) -> ListedFile:
    match line.split():
        case [sha256, size, path] if _SHA256.fullmatch(sha256) and size.isascii() and size.isdigit():
            return ListedFile(path=path, sha256=sha256, size=int(size))
    raise ImageError(f"{where}: expected a digest, a size and a path, got {line[:120]!r}")
