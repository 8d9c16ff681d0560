"""The API reference, written from docstrings: `python -m reference`; `--check` fails if it is stale.

One page for each public package. Sources are read, not imported, so that a signature is shown as it was written.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
PAGES = ROOT / "docs" / "reference"
PACKAGES = (
    "navarch",
    "navarch.api",
    "navarch.cache",
    "navarch.client",
    "navarch.controller",
    "navarch.errors",
    "navarch.operator",
    "navarch.webhook",
    "navarch.queue",
    "navarch.schema",
    "navarch.testing",
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_HEAD = "<!-- Written by `python -m reference` from docstrings. -->\n"
_WIDE = 100


@dataclass(frozen=True)
class Definition:
    """A name, the module that defines it, and the statements that do, of which a docstring may be the last."""

    name: str
    module: str
    statements: tuple[ast.stmt, ...]


def main(arguments: list[str]) -> int:
    """Writes the pages, or checks that they are there."""
    pages = {PAGES / "README.md": index(), **{PAGES / f"{name}.md": page(name) for name in PACKAGES}}
    if "--check" not in arguments:
        PAGES.mkdir(exist_ok=True)
        for path in set(PAGES.glob("*.md")) - pages.keys():
            path.unlink()
        for path, content in pages.items():
            path.write_text(content)
        return 0
    stale = [path.name for path, content in pages.items() if not path.exists() or path.read_text() != content]
    stale += [path.name for path in PAGES.glob("*.md") if path not in pages]
    if stale:
        print(f"docs/reference: {', '.join(sorted(stale))} are stale; run `python -m reference`", file=sys.stderr)
    return 1 if stale else 0


def index() -> str:
    """The page that lists the others."""
    rows = [f"| [`{name}`]({name}.md) | {_first_line(ast.get_docstring(tree(name)))} |" for name in PACKAGES]
    return "\n".join([_HEAD, "# API reference\n", "| package | what is in it |", "|---|---|", *rows, ""])


def page(package: str) -> str:
    """What a package offers: its own names in full, and where to find those of others."""
    parts = [_HEAD, f"# {package}\n", cleandoc(ast.get_docstring(tree(package)) or ""), ""]
    for name in public_names(package):
        found = definition(package, name)
        home = _home(found)
        if home != package and name in public_names(home):
            parts.append(f"- [`{name}`]({home}.md#{name.lower()}): {_first_line(_docstring(found))}")
        else:
            parts += ["", f"## {name}\n", *_described(found)]
    return "\n".join(parts).rstrip() + "\n"


def _home(found: Definition) -> str:
    """The public package that a name belongs to."""
    return max((package for package in PACKAGES if f"{found.module}.".startswith(f"{package}.")), key=len)


# Sources


@cache
def tree(module: str) -> ast.Module:
    """The source of a module or package."""
    return ast.parse(source_file(module).read_text())


def source_file(module: str) -> Path:
    """Where a module or package is defined."""
    path = SOURCES.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def public_names(package: str) -> tuple[str, ...]:
    """`__all__`, or every public class and function of a module without one."""
    for statement in tree(package).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return tuple(name for name in ast.literal_eval(statement.value) if not name.startswith("_"))
    defined = [node.name for node in tree(package).body if isinstance(node, (ast.ClassDef, *_FUNCTIONS))]
    return tuple(name for name in defined if not name.startswith("_"))


def definition(module: str, name: str) -> Definition:
    """Where the name is defined, through whatever modules it is passed on."""
    body = tree(module).body
    for index, statement in enumerate(body):
        if _defines(statement, name):
            overloads = tuple(node for node in body[index:] if _defines(node, name))
            return Definition(name, module, overloads + _docstring_after(body, body.index(overloads[-1])))
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return definition(node.module, name)
    raise LookupError(f"expected {module} to define or import {name}, got neither")


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, (ast.ClassDef, *_FUNCTIONS)):
        return statement.name == name
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]) == name
    return isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name


def _docstring_after(body: list[ast.stmt], index: int) -> tuple[ast.stmt, ...]:
    following = body[index + 1 : index + 2]
    return tuple(node for node in following if _is_text(node)) if not isinstance(body[index], ast.ClassDef) else ()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# Pages


def _described(found: Definition) -> Iterator[str]:
    first = found.statements[0]
    yield _fenced(_signatures(found.statements))
    yield f"\n{_docstring_text(_docstring(found))}\n"
    if isinstance(first, ast.ClassDef):
        yield from _members(found, first)


def _signatures(statements: tuple[ast.stmt, ...]) -> list[str]:
    if isinstance(statements[0], ast.ClassDef):
        return [_class_line(statements[0])]
    functions = [node for node in statements if isinstance(node, _FUNCTIONS)]
    overloads = [node for node in functions if "overload" in _decorators(node)]
    if functions:
        return [_signature(node) for node in overloads or functions]
    return [ast.unparse(node) for node in statements if not _is_text(node)]


def _members(found: Definition, node: ast.ClassDef) -> Iterator[str]:
    """Fields, then methods and properties, those of private base classes included."""
    fields = list(_fields(node))
    if fields:
        yield "| field | type | |\n|---|---|---|"
        yield from fields
        yield ""
    for method in _methods(found, node):
        statements = tuple(each for each in method if isinstance(each, _FUNCTIONS))
        yield f"### {node.name}.{statements[0].name}\n"
        yield _fenced(_signatures(statements))
        yield f"\n{_docstring_text(ast.get_docstring(statements[-1]))}\n"


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for statement, following in pairwise([*node.body, ast.Pass()]):
        if isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.target).startswith("_"):
            text = following.value.value if _is_text(following) else ""  # type: ignore[attr-defined]  # as was just seen
            kind = ast.unparse(statement.annotation).replace("|", "\\|")
            default = f" = {ast.unparse(statement.value)}".replace("|", "\\|") if statement.value else ""
            yield f"| `{ast.unparse(statement.target)}` | `{kind}{default}` | {_one_line(text)} |"


def _methods(found: Definition, node: ast.ClassDef) -> Iterator[list[ast.stmt]]:
    """Each public method with its overloads; a property counts as one."""
    seen: dict[str, list[ast.stmt]] = {}
    for statement in _body(found, node):
        if isinstance(statement, _FUNCTIONS) and not statement.name.startswith("_"):
            seen.setdefault(statement.name, []).append(statement)
    yield from seen.values()


def _body(found: Definition, node: ast.ClassDef) -> Iterator[ast.stmt]:
    yield from node.body
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        try:
            inherited = definition(found.module, name)
        except (LookupError, FileNotFoundError):
            continue  # of a library
        first = inherited.statements[0]
        if isinstance(first, ast.ClassDef) and name not in public_names(_home(inherited)):
            yield from _body(inherited, first)


def _class_line(node: ast.ClassDef) -> str:
    arguments = [*map(ast.unparse, node.bases), *(f"{word.arg}={ast.unparse(word.value)}" for word in node.keywords)]
    constructor = next((each for each in node.body if isinstance(each, _FUNCTIONS) and each.name == "__init__"), None)
    if constructor is not None:
        return f"class {node.name}({_parameters(constructor)})"
    return f"class {node.name}({', '.join(arguments)})" if arguments else f"class {node.name}"


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kinds = [f"@{name}" for name in _decorators(node) if name in {"property", "classmethod", "staticmethod"}]
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return "\n".join([*kinds, f"{word} {node.name}({_parameters(node)}){returns}"])


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.unparse(node.args)
    own = text.removeprefix("self").removeprefix("cls").removeprefix(", ")
    if len(own) < _WIDE:
        return own
    whole = ast.parse(f"def f({own}): ...").body[0]
    assert isinstance(whole, ast.FunctionDef)
    return "\n    " + ",\n    ".join(_each_parameter(whole.args)) + ",\n"


def _each_parameter(given: ast.arguments) -> Iterator[str]:
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        yield _parameter(argument, default)
        if given.posonlyargs and index == len(given.posonlyargs) - 1:
            yield "/"
    if given.vararg:
        yield f"*{ast.unparse(given.vararg)}"
    elif given.kwonlyargs:
        yield "*"
    yield from (_parameter(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True))
    if given.kwarg:
        yield f"**{ast.unparse(given.kwarg)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default is not None else "")


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def _docstring(found: Definition) -> str:
    first, last = found.statements[0], found.statements[-1]
    if isinstance(first, (ast.ClassDef, *_FUNCTIONS)):
        functions = [node for node in found.statements if isinstance(node, (ast.ClassDef, *_FUNCTIONS))]
        return ast.get_docstring(functions[-1]) or ""
    return cleandoc(last.value.value) if _is_text(last) else ""  # type: ignore[attr-defined]  # as was just seen


def _docstring_text(text: str | None) -> str:
    """A docstring as Markdown: its examples become a block."""
    lines, inside = [], False
    for line in cleandoc(text or "").splitlines():
        begins = line.lstrip().startswith(">>>")
        if begins and not inside:
            lines.append("```pycon")
            inside = True
        if inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


def _first_line(text: str | None) -> str:
    return _one_line((text or "").strip().partition("\n\n")[0])


def _one_line(text: str) -> str:
    return " ".join(cleandoc(text).split()).replace("|", "\\|")


def _fenced(signatures: list[str]) -> str:
    return "\n".join(["```python", *signatures, "```"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
