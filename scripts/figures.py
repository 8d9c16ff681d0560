"""The README's figures, written from benchmarks/results: `python -m figures`; `--check` fails if they are stale."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
_BLOCK = re.compile(r"(<!-- figures: [^\n]* -->\n).*?(<!-- /figures -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Writes the figures into the README, or checks that they are there."""
    old = README.read_text()
    new = _BLOCK.sub(lambda found: found[1] + table() + found[2], old)
    if "--check" not in arguments:
        README.write_text(new)
    elif old != new:
        print("README.md: the figures are not those of benchmarks/results; run `python -m figures`", file=sys.stderr)
        return 1
    return 0


def table() -> str:
    """One row per claim, as it was measured; what was measured without a target is in the files alone."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    lines = ["| claim | ours | best peer | ratio | target |", "|---|---|---|---|---|"]
    lines += [_line(row) for result in results for row in result["rows"] if row["target"]]
    lines += [
        "",
        *(f"{result['name']}: {result['when'][:10]}, {result['commit']}, {result['machine']}  " for result in results),
    ]
    return "\n".join(lines) + "\n" if results else ""


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
