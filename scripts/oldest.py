"""The oldest version of each dependency that pyproject.toml allows, as pip's constraints: `python -m oldest`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
_MINIMUM = re.compile(r"(?P<name>[\w.-]+)(\[[\w,.-]+\])?>=(?P<version>[\w.]+)\Z")


def constraints() -> list[str]:
    """One line for each dependency and each of the extras. Raises `ValueError` for one without a minimum."""
    project = tomllib.loads(_PROJECT.read_text())["project"]
    optional = project["optional-dependencies"].values()
    wanted = {*project["dependencies"], *(each for extra in optional for each in extra)}
    found = []
    for requirement in sorted(wanted):
        match = _MINIMUM.match(requirement)
        if match is not None:
            found.append(f"{match['name']}=={match['version']}")
        elif not requirement.startswith("navarch["):
            raise ValueError(f"expected {requirement!r} to have a minimum, such as >=1.0, got none")
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints()) + "\n")
