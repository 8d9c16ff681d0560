"""`PythonTarget`: a platform, a Python and a C library that wheels and bytecode are for."""

from __future__ import annotations

import platform
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Platform

MACHINES: Final = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
"""The platforms that images can be built for, and how Linux names their machines."""
_OLDEST_GLIBC: Final = {"x86_64": 5, "aarch64": 17}
_ALIASES: Final = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


class PythonTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A Python that wheels are for."""

    platform: Platform
    python: str
    """The whole version: 3.13.5."""
    glibc: str

    @property
    def machine(self) -> str:
        """Returns the machine as Linux names it; raises `ImageError` for a platform without wheels."""
        return machine_of(str(self.platform))

    @property
    def minor(self) -> str:
        """Returns the version without its last part: 3.13."""
        return ".".join(self.python.split(".")[:2])

    def tags(self) -> list[str]:
        """Returns all platform tags that its C library can load, the newest first."""
        newest = int(self.glibc.split(".")[1])
        found = []
        for minor in range(newest, _OLDEST_GLIBC[self.machine] - 1, -1):
            found.append(f"manylinux_2_{minor}_{self.machine}")
            found += [f"{_ALIASES[minor]}_{self.machine}"] if minor in _ALIASES else []
        return found

    def check(self, filename: str) -> None:
        """Raises `ImageError` for a wheel that the target cannot load."""
        platforms = filename.removesuffix(".whl").rsplit("-", 1)[1].split(".")
        if not {"any", *self.tags()} & set(platforms):
            raise ImageError(
                f"image.lock: {self.platform}: expected wheels for this platform and glibc {self.glibc}, got {filename}; "
                f"run: navarch image lock"
            )

    def arguments(self) -> list[str]:
        """Returns how pip is told to choose wheels for it: with fewer tags, pip would choose old releases instead."""
        abis = (f"cp{self.minor.replace('.', '')}", "abi3", "none")
        return [
            "--only-binary=:all:",
            f"--python-version={self.python}",
            "--implementation=cp",
            *(f"--abi={each}" for each in abis),
            *(f"--platform={each}" for each in self.tags()),
        ]

    def environment(self) -> dict[str, str]:
        """Returns the values of environment markers."""
        return {
            "implementation_name": "cpython",
            "implementation_version": self.python,
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": self.python,
            "python_version": self.minor,
            "sys_platform": "linux",
        }


def machine_of(platform: str) -> str:
    """Returns the machine of a platform as Linux names it; raises `ImageError` for an unknown platform."""
    if platform not in MACHINES:
        raise ImageError(
            f"[tool.navarch.build] platforms: expected platforms of {', '.join(MACHINES)}, got {platform!r}"
        )
    return MACHINES[platform]


def host_platform() -> str:
    """Returns the platform of this machine; empty if images cannot be built for it."""
    return next((name for name, machine in MACHINES.items() if machine == platform.machine()), "")
