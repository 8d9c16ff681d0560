"""Checks of this machine: Python, navarch with its extras, kubectl."""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from navarch._version import __version__
from navarch.project.doctor.finding import Finding, Health

_OLDEST_PYTHON: Final = (3, 11)
_EXTRAS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "cli": (("typer", "rich", "jinja2"), "this command line"),
    "cluster": (("cryptography", "re2"), "embedded clusters, in tests and with navarch run --cluster"),
    "webhook": (("cryptography",), "certificates of webhooks"),
    "schema": (("re2",), "patterns in schemas, checked as the API server does"),
    "fast": (("uvloop",), "a faster event loop"),
    "otel": (("opentelemetry",), "traces"),
}
"""The modules that an extra brings, and what they are for."""
_KUBECTL_SECONDS: Final = 5.0
_SKEW: Final = 1
"""How many minor versions kubectl may be away from the server, as Kubernetes promises."""


def check_python() -> Finding:
    """Checks the version of Python."""
    version = platform.python_version()
    if sys.version_info < _OLDEST_PYTHON:
        wanted = ".".join(map(str, _OLDEST_PYTHON))
        return Finding("python", "fail", f"expected {wanted} or newer, got {version}", f"install Python {wanted}")
    return Finding("python", "ok", f"{version} in {sys.prefix}")


def check_navarch() -> Finding:
    """Names the version of navarch."""
    return Finding("navarch", "ok", __version__)


def check_extras(needed: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """Checks that the modules of each extra can be found; a missing one is a fault only if it is needed."""
    for extra, (modules, purpose) in _EXTRAS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        check = f"extra {extra}"
        if not missing:
            yield Finding(check, "ok", purpose)
        else:
            state: Health = "fail" if extra in needed else "warn"
            detail = f"{', '.join(missing)} not installed: {purpose}"
            yield Finding(check, state, detail, f"pip install 'navarch[{extra}]'")


def check_kubectl(server_minor: int | None) -> Finding:
    """Checks that kubectl is there, and that its version fits the server's; navarch itself does not need it."""
    program = shutil.which("kubectl")
    if program is None:
        return Finding("kubectl", "warn", "not found in PATH; navarch does not need it", "install kubectl")
    try:
        done = subprocess.run(  # noqa: S603 - the user's own program
            [program, "version", "--client", "--output=json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_KUBECTL_SECONDS,
            check=True,
        )
        found = json.loads(done.stdout)["clientVersion"]
        version, minor = str(found["gitVersion"]), int(str(found["minor"]).rstrip("+"))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        return Finding("kubectl", "warn", f"{program} does not tell its version: {error}", "install kubectl again")
    if server_minor is not None and abs(minor - server_minor) > _SKEW:
        detail = f"{version} is more than one minor version away from the server's 1.{server_minor}"
        return Finding("kubectl", "warn", detail, f"install kubectl 1.{server_minor}")
    return Finding("kubectl", "ok", f"{version} at {program}")
