"""Resolves requirements to wheels for other platforms."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import Version

from navarch.errors import ImageError
from navarch.project.image.lock_file import LockedWheel
from navarch.project.image.pip import PipOptions, run_pip
from navarch.project.image.targets import PythonTarget


def resolve(requirements: Sequence[str], target: PythonTarget, options: PipOptions) -> tuple[LockedWheel, ...]:
    """Returns the newest wheels that satisfy the requirements on the target, sorted by name.

    Raises `ImageError` with the requirement that no wheel satisfies.
    """
    if not requirements:
        return ()
    with tempfile.TemporaryDirectory(prefix="navarch-lock-") as folder:
        arguments = ["install", "--dry-run", "--ignore-installed", "--report=-", f"--target={folder}"]
        report = run_pip([*arguments, *requirements], target, options)
    found: Any = json.loads(report)
    return tuple(sorted((_wheel(each) for each in found["install"]), key=lambda each: each.name))


def _wheel(entry: dict[str, Any]) -> LockedWheel:
    source = entry["download_info"]
    name, version = entry["metadata"]["name"], entry["metadata"]["version"]
    filename = PurePosixPath(unquote(urlsplit(source["url"]).path)).name
    sha256 = source.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    if entry.get("is_direct") or not sha256:
        raise ImageError(
            f"{name} {version}: expected a wheel of an index, got one by its address; build it, and lock with --find-links FOLDER"
        )
    return LockedWheel(name=canonicalize_name(name), version=str(Version(version)), filename=filename, sha256=sha256)
