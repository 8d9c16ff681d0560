"""Kubernetes' protobuf messages as a data file of the embedded server, and samples of them for its tests.

Run it as `python -m kubernetes_api.protobuf`: Go tells what its types say of themselves.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kubernetes_api import files
from kubernetes_api.kinds import served_kinds
from navarch.k8s.published import Published
from rig import tools

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "scripts/go_types"
DATA = ROOT / "src/navarch/cluster/server/wire/protobuf/data"
SAMPLES = ROOT / "tests/cluster/protobuf/samples.json.gz"
OF_EVERY_KIND = {"apiVersion", "kind"}
"""What lies around the message of an object, not in it."""

Json = dict[str, Any]


def main() -> int:
    """Write both files."""
    size = files.write(DATA, {"messages.json": _told("messages")})
    SAMPLES.parent.mkdir(exist_ok=True)
    samples = _told("samples")
    SAMPLES.write_bytes(gzip.compress(json.dumps(samples, sort_keys=True).encode(), mtime=0))
    print(f"messages of {size / 1000:.0f} kB, {len(samples)} samples of {SAMPLES.stat().st_size / 1000:.0f} kB")
    return 0


def _told(what: str) -> Any:
    go = tools.go((SOURCE / "go.mod").read_text(encoding="utf-8"))
    command = [str(go), "run", "-C", str(SOURCE), "./protobuf", what]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def stale_messages(published: Published) -> list[str]:
    """The messages that have other fields than their published schemas, and the served kinds that have none."""
    table = json.loads((DATA / "messages.json").read_bytes())
    messages: dict[str, Json] = table["messages"]
    schemas = {_short(name): published.schema(name) for name in published.schema_names()}
    unlike = {
        name
        for name in messages.keys() & schemas.keys()
        if "properties" in schemas[name]
        and (schemas[name]["properties"].keys() ^ _field_names(messages, name)) - OF_EVERY_KIND
    }
    return sorted(unlike | {_short(name) for name in served_kinds(published)} - messages.keys())


def _short(schema: str) -> str:
    """As the table calls the type of a schema.

    >>> _short("io.k8s.api.core.v1.Pod")
    'core/v1.Pod'
    """
    *_, package, version, name = schema.split(".")
    return f"{package}/{version}.{name}"


def _field_names(messages: dict[str, Json], name: str) -> set[str]:
    names: set[str] = set()
    for text in messages[name].values():
        label, _, _, target = text.split(" ")
        names |= _field_names(messages, target) if label == "-" else {label}
    return names


if __name__ == "__main__":
    sys.exit(main())
