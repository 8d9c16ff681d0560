"""Runs pip, with its own configuration, for other platforms than this one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.project.image.lock_file import LockedWheel
from navarch.project.image.targets import PythonTarget

_SECONDS: Final = 1800.0

# pip evaluates markers for the Python that runs it: the target's environment has to take its place.
_PROGRAM: Final = """
import json, runpy, sys
from pip._vendor.packaging import markers
environment = json.loads(sys.argv[1])
markers.default_environment = lambda: dict(environment)
sys.argv[:] = ["pip", *sys.argv[2:]]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


class PipOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where pip looks for wheels, beside its own configuration."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False

    def arguments(self) -> list[str]:
        """Returns them as pip has them."""
        return [
            *([f"--index-url={self.index_url}"] if self.index_url else []),
            *(f"--extra-index-url={each}" for each in self.extra_index_urls),
            *(f"--find-links={each}" for each in self.find_links),
            *(["--no-index"] if self.no_index else []),
        ]


def download(wheels: Iterable[LockedWheel], target: PythonTarget, folder: Path, options: PipOptions) -> None:
    """Downloads the wheels into the folder; pip refuses those with another digest, with `ImageError`."""
    lines = [f"{each.name}=={each.version} --hash=sha256:{each.sha256}\n" for each in wheels]
    listed = folder / "requirements.txt"
    listed.write_text("".join(lines), encoding="utf-8")
    arguments = ["download", "--no-deps", "--require-hashes", f"--dest={folder}", f"--requirement={listed}"]
    run_pip(arguments, target, options)


def run_pip(arguments: Sequence[str], target: PythonTarget, options: PipOptions) -> bytes:
    """Runs pip for the target and returns what it prints. Raises `ImageError` with what its failure means."""
    common = ["--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    done = subprocess.run(  # noqa: S603 - this Python, and arguments that no shell reads
        [
            *(sys.executable, "-P", "-c", _PROGRAM, json.dumps(target.environment())),
            *(arguments[0], *common, *target.arguments(), *options.arguments(), *arguments[1:]),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise _failure(done.stderr.decode(errors="replace"), target)
    return done.stdout


def _failure(said: str, target: PythonTarget) -> ImageError:
    """Returns what pip's message means for the user."""
    where = f"{target.platform} with Python {target.minor} and glibc {target.glibc}"
    if "No module named pip" in said:
        return ImageError(f"expected pip beside navarch, got none: {sys.executable} -m ensurepip")
    mismatch = re.search(r"^\s+(\S+)==(\S+) from .*\n\s+Expected sha256 +(\w+)\s+Got +(\w+)", said, re.MULTILINE)
    if mismatch:
        name, version, expected, got = mismatch.groups()
        return ImageError(
            f"{name} {version}: expected a wheel with the SHA-256 {expected} of image.lock, got {got}: the wheel or the lock was "
            f"changed; find out why, then run: navarch image lock"
        )
    missing = re.search(r"No matching distribution found for (.+)", said)
    if missing and "Retrying (" not in said:
        versions = re.search(r"\(from versions: (.*?)\)", said)
        others = f" (versions with one: {versions[1]})" if versions and versions[1] != "none" else ""
        return ImageError(
            f"no wheel of {missing[1].strip()} for {where}{others}; allow another version, or build a wheel and give "
            f"--find-links FOLDER, or take {target.platform} out of [tool.navarch.build] platforms"
        )
    lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith(("ERROR: ", "    "))]
    return ImageError(f"pip failed for {where}: {' '.join(' '.join(lines or said.splitlines()[-3:]).split())}")
