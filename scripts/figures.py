"""Writes the figures of docs/benchmarks.md and the README from benchmarks/results; `--check` fails if they are stale."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"

# The README shows the figures that a newcomer asks for first.
MOST_IMPORTANT = (
    "reconcile 10,000 custom resources of 2.6 KB once, doing nothing: time",
    "reconcile 10,000 custom resources of 2.6 KB once, doing nothing: peak memory",
    "list 10,000 custom resources of 1.7 KB: CPU of the whole process",
    "a fresh server in the process of a test, after the first: time to its first answer",
    "acknowledged writes lost",
)


def main(arguments: list[str]) -> int:
    """Writes the figures into the pages, or checks that they are there."""
    stale = []
    for page, name, text in (
        (ROOT / "docs" / "benchmarks.md", "figures", table() + _origins()),
        (ROOT / "README.md", "five figures", table(MOST_IMPORTANT)),
    ):
        old = page.read_text()
        new = re.sub(
            rf"(<!-- {name}: [^\n]* -->\n).*?(<!-- /{name} -->)",
            lambda found, text=text: found[1] + text + found[2],  # type: ignore[misc]  # bound at once
            old,
            flags=re.DOTALL,
        )
        if "--check" not in arguments:
            page.write_text(new)
        elif old != new:
            stale.append(page.relative_to(ROOT))
    for page in stale:
        print(f"{page}: the figures are not those of benchmarks/results; run `python -m figures`", file=sys.stderr)
    return 1 if stale else 0


def table(claims: tuple[str, ...] = ()) -> str:
    """Returns one row per measured claim with a target; the others are in the files alone."""
    rows = [row for result in _results() for row in result["rows"] if row["target"]]
    if claims:
        rows = [next(row for row in rows if row["claim"] == claim) for claim in claims]
    lines = ["| claim | ours | best peer | ratio | target |", "|---|---|---|---|---|", *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _origins() -> str:
    lines = (f"{each['name']}: {each['when'][:10]}, {each['commit']}, {each['machine']}  " for each in _results())
    return "\n" + "\n".join(lines) + "\n"


def _results() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def _line(row: dict[str, Any]) -> str:
    """A target names a peer (`at most 0.5 x kopf`), or is a figure of its own (`at most 50 ms`)."""
    target, is_beside, name = row["target"].partition(" x ")
    name, target = (name, f"{target} x") if is_beside else (next(iter(row["peers"]), ""), target)
    verdict = f"{target}, {'met' if row['met'] else 'missed'}"
    unit = row["unit"]
    peer = f"{name} {_figure(row['peers'][name], unit)}" if name else "-"
    claim = row["claim"] + (f" (as of {row['as_of']})" if row.get("as_of") else "")
    return f"| {claim} | {_figure(row['ours'], unit)} | {peer} | {row['ratio']:.2f} | {verdict} |"


def _figure(value: float, unit: str) -> str:
    """As people write it.

    >>> _figure(1860.4, "ms"), _figure(0.4119, "s"), _figure(0.0, "")
    ('1,860 ms', '0.412 s', '0')
    """
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
