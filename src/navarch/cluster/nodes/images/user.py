"""`find_user`: the user of an unpacked image, looked up in its own /etc/passwd and /etc/group as container runtimes do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from navarch.errors import ContainerError

_LARGEST: Final = 2**20
_LONGEST_NUMBER: Final = 10
_ROOT: Final = "0"


class ImageUser(NamedTuple):
    """A user of an image. `is_named`: the image names it by a name, not by a number."""

    uid: int
    gid: int
    home: str = "/"
    is_named: bool = False


def find_user(root: Path, text: str) -> ImageUser:
    """Returns the user that `USER[:GROUP]` of an image's configuration means; without one it is root.

    A number need not be in /etc/passwd. Raises `ContainerError` for a name that the image does not have.
    """
    name, _, group = (text or _ROOT).partition(":")
    numeric = _is_number(name)
    for entry in _entries(root / "etc" / "passwd", 7):
        if (numeric and entry[2] == name) or (not numeric and entry[0] == name):
            found = ImageUser(int(entry[2]), int(entry[3]), entry[5] or "/", is_named=not numeric)
            break
    else:
        if not numeric:
            raise ContainerError(f"unable to find user {name}: no matching entries in passwd file of the image")
        found = ImageUser(int(name), 0)
    return found._replace(gid=_group(root, group)) if group else found


def _group(root: Path, text: str) -> int:
    if _is_number(text):
        return int(text)
    for entry in _entries(root / "etc" / "group", 3):
        if entry[0] == text:
            return int(entry[2])
    raise ContainerError(f"unable to find group {text}: no matching entries in group file of the image")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _entries(path: Path, least: int) -> Iterator[list[str]]:
    """Yields the lines of a file of accounts, split; skips those that are none."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        entry = line.split(":")
        if len(entry) >= least and _is_number(entry[2]) and (least <= 3 or _is_number(entry[3])):
            yield entry
