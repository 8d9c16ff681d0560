"""ko, built through the Go module proxy, and its image of the same operator on controller-runtime."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from rig.build import build
from rig.programs import Program
from ship.bases import PLATFORM
from ship.ours import run

VERSION: Final = "v0.19.1"
_SOURCE: Final = Path(__file__).parent / "ko"
_OPERATOR: Final = Path(__file__).parent / "memcached_go"
_LINE: Final = 'Image: "memcached:1.6'


class _Ko(Program):
    @property
    def source(self) -> Path:
        """The folder of the Go module that pins its version."""
        return _SOURCE


KO: Final = _Ko("ko", "benchmark", "github.com/google/ko", VERSION)


def prepare() -> None:
    """Builds ko; raises MissingToolError, with the command that installs it, if there is no Go."""
    build([KO])


def make_project(folder: Path) -> None:
    """Copies the operator into the folder."""
    shutil.copytree(_OPERATOR, folder)


def change(folder: Path, number: int) -> None:
    """Changes one line of the reconciler."""
    file = folder / "reconciler.go"
    head, found, tail = file.read_text().partition(_LINE)
    if not found:
        raise RuntimeError(f"expected {_LINE!r} in {file}")
    file.write_text(f'{head}{_LINE}.{number}-alpine",{tail.partition(",")[2]}')


def push(folder: Path, address: str, name: str, *, base: str, is_stripped: bool = False) -> None:
    """Builds and pushes the image, with its SBOM, as ko does by default, or without debug data; over plain HTTP."""
    settings = folder.parent / "ko.yaml"
    settings.write_text("builds:\n- id: main\n  ldflags: [-s, -w]\n" if is_stripped else "")
    environment = {
        "KO_CONFIG_PATH": str(settings),
        "KO_DOCKER_REPO": f"{address}/{name}",
        "KO_DEFAULTBASEIMAGE": base,
    }
    run([KO.path, "build", "--bare", "--insecure-registry", f"--platform={PLATFORM}", "."], folder, environment)
