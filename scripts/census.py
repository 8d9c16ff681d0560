"""Counts the pieces of the code base: modules, single-importer modules, repeated class names and import cycles.

`--base REV` prints an earlier commit beside the working tree, `--list` the names behind each number. `--check` fails for a
repeated class name that `SHARED_NAMES` does not explain, and for an import cycle.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOTS = ("src", "operators/etcd/src")
SMALL = 80

# A class name means one thing in the repository. Each exception has its reason.
SHARED_NAMES: dict[str, str] = {}


@dataclass
class Census:
    """The modules of one tree with their imports of each other."""

    lines: dict[str, int] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    classes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, tree: Path) -> Census:
        """Reads every module beneath `ROOTS` but the generated ones."""
        census = cls()
        parsed = {}
        for root in ROOTS:
            for path in sorted((tree / root).rglob("*.py")):
                if "navarch/k8s" in path.as_posix():
                    continue
                name = _module_name(path.relative_to(tree / root))
                source = path.read_text()
                census.lines[name] = source.count("\n")
                if path.name == "__init__.py":
                    census.packages.add(name)
                parsed[name] = ast.parse(source)
        for name, module in parsed.items():
            census.imports[name] = {found for found in _imported(module, parsed) if found != name}
            for node in module.body:
                if isinstance(node, ast.ClassDef):
                    census.classes[node.name.lstrip("_")].add(name)
        return census

    def single_importer(self, under: int) -> list[tuple[str, str]]:
        """Modules shorter than `under` lines that exactly one other module imports, with that module."""
        importers = defaultdict(set)
        for name, imported in self.imports.items():
            for found in imported:
                importers[found].add(name)
        return [
            (name, next(iter(importers[name])))
            for name, lines in self.lines.items()
            if name not in self.packages and len(importers[name]) == 1 and lines < under
        ]

    def repeated_classes(self) -> dict[str, set[str]]:
        """Class names, without a leading underscore, that two or more modules define."""
        return {name: modules for name, modules in self.classes.items() if len(modules) > 1}

    def cycles(self) -> list[tuple[str, list[str]]]:
        """Each package with the groups of its children that import each other in a circle."""
        found = []
        for package in sorted(self.packages):
            children = self._children(package)
            found += [(package, sorted(group)) for group in _strong_components(children) if len(group) > 1]
        return found

    def _children(self, package: str) -> dict[str, set[str]]:
        """The imports between the direct children of a package; its own `__init__` belongs to none of them."""
        prefix = package + "."
        graph: dict[str, set[str]] = defaultdict(set)
        for name, imported in self.imports.items():
            if not name.startswith(prefix):
                continue
            child = name[len(prefix) :].partition(".")[0]
            graph[child] |= {
                other
                for found in imported
                if found.startswith(prefix) and (other := found[len(prefix) :].partition(".")[0]) != child
            }
        return graph

    def numbers(self) -> dict[str, int]:
        """The figures that `python -m census` prints."""
        return {
            "modules": len(self.lines),
            "lines": sum(self.lines.values()),
            "modules with one importer": len(self.single_importer(under=10**6)),
            f"of these under {SMALL} lines": len(self.single_importer(under=SMALL)),
            "class names": len(self.classes),
            "class names defined in two or more modules": len(self.repeated_classes()),
            "groups of siblings that import each other in a circle": len(self.cycles()),
        }


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(module: ast.Module, known: Iterable[str]) -> Iterator[str]:
    modules = set(known)
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                leaf = f"{node.module}.{alias.name}"
                if leaf in modules:
                    yield leaf
                elif node.module in modules:
                    yield node.module


def _strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    reachable = {name: _reachable(graph, name) for name in graph}
    groups: list[set[str]] = []
    for name in graph:
        if not any(name in group for group in groups):
            groups.append({name} | {other for other in reachable[name] if name in reachable.get(other, ())})
    return groups


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    pending = [start]
    while pending:
        for other in graph.get(pending.pop(), ()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen


def _of_commit(revision: str) -> Census:
    archive = subprocess.run(["git", "archive", revision, *ROOTS], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        return Census.of(Path(folder))


def _check(census: Census) -> int:
    repeated = {name: where for name, where in census.repeated_classes().items() if name not in SHARED_NAMES}
    for name, modules in sorted(repeated.items()):
        print(
            f"class name {name} is defined in {', '.join(sorted(modules))}; rename all but one, or give the reason in scripts/census.py"
        )
    stale = sorted(set(SHARED_NAMES) - set(census.repeated_classes()))
    for name in stale:
        print(f"class name {name} is defined once; remove it from SHARED_NAMES in scripts/census.py")
    for package, group in census.cycles():
        print(f"import cycle in {package}: {', '.join(group)}")
    return 1 if repeated or stale or census.cycles() else 0


def main() -> int:
    """Prints the counts, or checks them."""
    parser = argparse.ArgumentParser(prog="python -m census")
    parser.add_argument("--base", metavar="REV", help="an earlier commit to compare with")
    parser.add_argument("--list", action="store_true", help="print the names behind each number")
    parser.add_argument("--check", action="store_true", help="fail for repeated class names and import cycles")
    arguments = parser.parse_args()
    census = Census.of(Path.cwd())
    if arguments.check:
        return _check(census)
    before = _of_commit(arguments.base).numbers() if arguments.base else {}
    for label, number in census.numbers().items():
        print(f"{label:<56}{before[label]:>8}{number:>8}" if before else f"{label:<56}{number:>8}")
    if arguments.list:
        for name, importer in census.single_importer(under=SMALL):
            print(f"one importer: {name} ({census.lines[name]} lines) <- {importer}")
        for name, modules in sorted(census.repeated_classes().items()):
            print(f"repeated: {name}: {', '.join(sorted(modules))}")
        for package, group in census.cycles():
            print(f"cycle in {package}: {', '.join(group)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
