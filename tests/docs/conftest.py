"""What pages are tried with."""

import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import DOCS
from docs.terminals import SECONDS


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Navarch as it is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(DOCS.parent)]
    subprocess.run(command, check=True, timeout=SECONDS)
    (built,) = folder.glob("*.whl")
    return built
