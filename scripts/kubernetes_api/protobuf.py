"""Kubernetes' protobuf messages as a data file of the embedded server, and samples of them for its tests.

`make judge` asks Go what its types say of themselves, and how it encodes their JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from judge import GO, Go, Recording, Verdicts
from kubernetes_api.kinds import served_kinds
from navarch.k8s.published import Published

ROOT = Path(__file__).parents[2]
DATA = ROOT / "src/navarch/cluster/server/wire/protobuf/data"
GO_TYPES = ROOT / "src/navarch/cluster/server/kinds/builtin/generic/data"
SAMPLES = ROOT / "tests/cluster/protobuf/samples.json.gz"
OF_EVERY_KIND = {"apiVersion", "kind"}
"""What lies around the message of an object, not in it."""

Json = dict[str, Any]


def ask_messages(go: Go) -> Verdicts:
    """Returns what Go's types say of their messages."""
    return {"messages.json": json.loads(go.output("./protobuf", "messages"))}


def ask_samples(go: Go) -> Verdicts:
    """Returns objects of all kinds as Go encodes them, and as JSON."""
    return {SAMPLES.name: json.loads(go.output("./protobuf", "samples"))}


def ask_types(go: Go) -> Verdicts:
    """Returns how Go encodes each struct of the API as JSON."""
    return {"go_types.json": json.loads(go.output("."))}


MESSAGE_RECORDING = Recording("protobuf-messages", GO, DATA, ("messages.json",), ask_messages)
SAMPLE_RECORDING = Recording("protobuf-samples", GO, SAMPLES.parent, (SAMPLES.name,), ask_samples)
TYPE_RECORDING = Recording("go-types", GO, GO_TYPES, ("go_types.json",), ask_types)


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
