"""What each right alone lets in: every verb on every sort of resource and part of it, tried with every sort of request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.rights_table import THINGS, Asker, allowed, recorded
from conformance.write_samples import Sample
from conformance.write_table import Server, prepared
from gadgets import installed
from navarch.client import Client, Config


@pytest.fixture
def server(config: Config) -> Iterator[Server]:
    server = Server(config)
    yield server
    server.close()


@pytest.fixture
def asker(config: Config) -> Iterator[Asker]:
    asker = Asker(config)
    yield asker
    asker.close()


@pytest.mark.parametrize("sample", THINGS, ids=lambda sample: sample.kind)
async def test_each_right_lets_in_what_it_does_on_kubernetes(
    client: Client, server: Server, asker: Asker, sample: Sample
) -> None:
    """And nothing else: a write that would create needs the right to create, a subresource needs its own."""
    namespace = str(client.options.namespace)
    prepared(server, namespace)
    await installed(client)
    assert allowed(server, asker, sample, namespace) == recorded()[sample.title]
