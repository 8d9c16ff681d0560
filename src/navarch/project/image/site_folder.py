"""`SiteFolder`: where an image's Python has its packages and programs."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree

SCRIPTS: Final = "usr/local/bin"
_SCRIPT: Final = """\
#!{python}
import sys

from {module} import {name}

if __name__ == "__main__":
    sys.exit({attribute}())
"""


class SiteFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where an image's Python has its packages."""

    python: str
    """The interpreter, as shebangs name it: /usr/local/bin/python3."""
    path: str
    """The folder of packages: usr/local/lib/python3.13/dist-packages."""

    def add_script(self, tree: FileTree, name: str, module: str, attribute: str) -> bytes:
        """Adds a program that calls a function, and returns its content. Raises `ImageError` for a name with a folder."""
        if "/" in name or name in {"", ".", ".."}:
            raise ImageError(f"expected the name of a program, got {name!r}")
        first = attribute.partition(".")[0]
        text = _SCRIPT.format(python=self.python, module=module, name=first, attribute=attribute)
        tree.add_file(f"{SCRIPTS}/{name}", text.encode(), mode=0o755)
        return text.encode()
