"""Nodes touch files that containers can change through `ConfinedDirectory` alone: any other way is found in their source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import navarch.cluster

_CLUSTER = Path(navarch.cluster.__file__ or "").parent
_CONFINED = (
    "nodes/*.py",
    "nodes/images/*.py",
    "nodes/network/*.py",
    "nodes/pods/*.py",
    "nodes/volumes/*.py",
    "nodes/shim/program/output.py",
    "nodes/shim/program/mounts.py",
    "embedded/control_plane.py",
)
_OTHERS = {
    "nodes/images/images.py": "the administrator's own file",
    "nodes/images/installed.py": "programs of this machine",
    "nodes/images/user.py": "an unpacked image, which containers see through a layer of their own",
}
"""Modules that open files which no container can change."""
_OF_OS = frozenset(
    {
        "chmod",
        "chown",
        "lchown",
        "link",
        "listdir",
        "makedirs",
        "mkdir",
        "mkfifo",
        "mknod",
        "open",
        "readlink",
        "remove",
    }
    | {"removedirs", "removexattr", "rename", "renames", "replace", "rmdir", "scandir", "setxattr", "symlink"}
    | {"truncate", "unlink", "utime", "walk", "fwalk"}
)
_OF_PATHS = frozenset(
    {"chmod", "glob", "hardlink_to", "iterdir", "lchmod", "mkdir", "read_bytes", "read_text", "readlink", "rename"}
    | {"resolve", "rglob", "rmdir", "symlink_to", "touch", "unlink", "write_bytes", "write_text"}
)
"""Methods of `Path`; those of `ConfinedDirectory` have other names."""
_MODULES = frozenset({"glob", "io", "shutil", "tempfile"})
_MODE = re.compile(r"[rwaxbt+]+")


def _faults(source: str) -> list[str]:
    """What a module does with files by itself, with its lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [f"{node.lineno}: import {each.name}" for each in node.names if each.name in _MODULES]
        elif isinstance(node, ast.ImportFrom):
            taken = {each.name for each in node.names}
            if node.module in _MODULES or (node.module == "os" and taken & _OF_OS):
                found.append(f"{node.lineno}: from {node.module} import {', '.join(sorted(taken))}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            found += [f"{node.lineno}: os.{node.attr}"] if node.attr in _OF_OS else []
        elif isinstance(node, ast.Attribute):
            found += [f"{node.lineno}: .{node.attr}"] if node.attr in _OF_PATHS else []
        elif isinstance(node, ast.Call) and _opens(node):
            found.append(f"{node.lineno}: open")
    return found


def _opens(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    first = call.args[0] if call.args else None
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "open"
        and isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and _MODE.fullmatch(first.value) is not None
    )


def test_nodes_touch_files_of_containers_through_roots_alone() -> None:
    """No module opens files in another way; a module that must is in the list above, with its reason."""
    modules = {path for pattern in _CONFINED for path in _CLUSTER.glob(pattern)}
    assert len(modules) > 30
    found = {str(path.relative_to(_CLUSTER)): _faults(path.read_text()) for path in sorted(modules)}
    assert {name: faults for name, faults in found.items() if faults and name not in _OTHERS} == {}
    assert all(found[name] for name in _OTHERS)


@pytest.mark.parametrize(
    "line",
    [
        "import shutil",
        "from shutil import rmtree",
        "from os import unlink",
        "os.unlink(path)",
        "remove = os.remove",
        "open(path)",
        "path.open('wb')",
        "(folder / name).write_text(text)",
        "path.mkdir(parents=True)",
        "home.path.iterdir()",
    ],
)
def test_other_ways_are_found(line: str) -> None:
    """The check finds every other way, so that the test above has meaning."""
    assert _faults(line)
