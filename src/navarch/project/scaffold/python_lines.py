"""Lines of Python as `ruff` formats them, for names of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

__all__ = ["imports", "wrapped"]

_WIDTH: Final = 120


def wrapped(head: str, parts: Sequence[str], tail: str) -> str:
    """Returns `head(parts)tail` on one line if it fits, else with its parts on a line of their own, or on one each.

    >>> wrapped("async def reconcile", ["it: Memcached", "ctx: Context"], " -> None:")
    'async def reconcile(it: Memcached, ctx: Context) -> None:'
    """
    whole = f"{head}({', '.join(parts)}){tail}"
    if len(whole) <= _WIDTH:
        return whole
    indent = " " * (len(head) - len(head.lstrip()))
    inner = f"{indent}    {', '.join(parts)}"
    if len(inner) <= _WIDTH:
        return f"{head}(\n{inner}\n{indent}){tail}"
    lines = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{head}(\n{lines}{indent}){tail}"


def imports(package: str, names: Mapping[str, Sequence[str]]) -> str:
    """Returns the imports of these names by module: those of other packages, then those of the project's own package.

    >>> print(imports("shop", {"shop.api": ["Shop"], "navarch": ["Operator", "Context"]}))
    from navarch import Context, Operator
    <BLANKLINE>
    from shop.api import Shop
    """
    own = {module: chosen for module, chosen in names.items() if module == package or module.startswith(f"{package}.")}
    others = {module: chosen for module, chosen in names.items() if module not in own}
    sections = ("\n".join(_lines(section)) for section in (others, own) if section)
    return "\n\n".join(sections)


def _lines(names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for module, chosen in sorted(names.items(), key=_natural_order):
        line = f"from {module} import {', '.join(sorted(chosen))}"
        inner = "".join(f"    {name},\n" for name in sorted(chosen))
        yield line if len(line) <= _WIDTH else f"from {module} import (\n{inner})"


def _natural_order(entry: tuple[str, Sequence[str]]) -> list[tuple[str, int]]:
    """Returns a sort key in which `v1beta2` is before `v1beta10`."""
    return [(text, int(number or 0)) for text, number in re.findall(r"([^0-9]*)([0-9]*)", entry[0])]
