"""What each way of writing changes of each built-in kind is what the real API server lets it change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.write_samples import SAMPLES, Sample
from conformance.write_table import Server, prepared, recorded, verdicts
from navarch.client import Client, Config
from navarch.cluster.server.kinds.builtin.catalog import builtin_types
from navarch.cluster.server.kinds.builtin.reset_fields import RESET_FIELDS

GROUPS = sorted({sample.group for sample in SAMPLES})
STORED = [each for each in builtin_types() if "update" in each.verbs]


@pytest.fixture
def server(config: Config) -> Iterator[Server]:
    server = Server(config)
    yield server
    server.close()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group or "core")
async def test_each_write_changes_what_the_table_says(client: Client, server: Server, group: str) -> None:
    """Field by field, through the object's own path and through each of its subresources."""
    namespace = str(client.options.namespace)
    owner = prepared(server, namespace)
    samples = [sample for sample in SAMPLES if sample.group == group]
    found = {sample.title: verdicts(server, sample, namespace, owner) for sample in samples}
    assert found == {sample.title: recorded()[sample.title] for sample in samples}


def test_the_table_knows_every_kind_that_is_stored() -> None:
    """None is written by rules that nobody has compared."""
    kinds = {(each.group, each.kind) for each in STORED}
    assert kinds == set(RESET_FIELDS) == {(sample.group, sample.kind) for sample in SAMPLES}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)
def test_the_table_knows_every_part_that_takes_writes(sample: Sample) -> None:
    """Whatever discovery says can be updated is tried out."""
    served = next(each for each in STORED if (each.api_version, each.kind) == (sample.api_version, sample.kind))
    parts = {name for name, part in served.subresources.items() if "update" in part.verbs} - {"proxy"}
    assert parts == {*sample.parts, *(["status"] if sample.status else [])}
