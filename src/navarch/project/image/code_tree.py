"""The code of a project as files of an image, without running a build backend."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.project.image.project_metadata import ProjectMetadata
from navarch.project.image.site_folder import SiteFolder
from navarch.project.project import Project

_LEFT_OUT: Final = frozenset({"__pycache__"})
_LEFT_OUT_ENDS: Final = (".pyc", ".pyo", ".egg-info", ".dist-info", "~", ".swp", ".orig", ".rej")


def code_tree(project: Project, metadata: ProjectMetadata, site: SiteFolder) -> FileTree:
    """Returns what is below `src`, with the dist-info and the programs of the project.

    Hidden files, bytecode and editors' copies are left out. Files are readable for all, whatever the umask was; the
    executable bit stays, since version control has it. Raises `ImageError` if the package is missing, and for a link
    that leads out of the project.
    """
    source = project.root / "src"
    if not project.source.is_dir():
        raise ImageError(
            f"expected the package {project.settings.package} in src, got no such folder; [tool.navarch] package names another"
        )
    tree = FileTree()
    for path, file in _files(source, "", project.root.resolve()):
        executable = file.stat().st_mode & stat.S_IXUSR
        tree.add_file(f"{site.path}/{path}", file.read_bytes(), mode=0o755 if executable else 0o644)
    info = f"{site.path}/{metadata.distribution}-{metadata.version}.dist-info"
    for name, content in metadata.files():
        tree.add_file(f"{info}/{name}", content.encode())
    for name, target in sorted(metadata.scripts.items()):
        module, _, attribute = target.partition(":")
        site.add_script(tree, name, module.strip(), attribute.strip())
    return tree


def _files(folder: Path, prefix: str, root: Path) -> Iterator[tuple[str, Path]]:
    """Yields paths below `src` and their files."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.startswith(".") or entry.name in _LEFT_OUT or entry.name.endswith(_LEFT_OUT_ENDS):
                continue
            file = Path(entry.path)
            if entry.is_symlink() and not (file.exists() and file.resolve().is_relative_to(root)):
                raise ImageError(f"{file}: expected a link to a file of the project, got one to {file.readlink()}")
            if entry.is_dir(follow_symlinks=False):
                yield from _files(file, f"{prefix}{entry.name}/", root)
            elif entry.is_file():
                yield f"{prefix}{entry.name}", file
