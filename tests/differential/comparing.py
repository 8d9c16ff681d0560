"""The same sequence on both servers, and where they part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import rig
from differential.custom import CUSTOM, DEFINITIONS
from differential.engines import Embedded, Engine, UnansweredError, real
from differential.generating import kinds_of
from differential.known import known_as
from differential.performing import Performance, differences_between
from differential.steps import OWN, Difference, Step
from navarch._base.clock import SystemClock
from navarch.cluster.embedded.cluster import EmbeddedCluster

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_READY_SECONDS = 30.0


@dataclass(frozen=True)
class Pair:
    """Both servers, with the custom kinds of the sequences."""

    embedded: Engine
    real: Engine

    async def difference(self, steps: Sequence[Step], namespace: str, *, watches: bool = True) -> Difference | None:
        """The first difference that is not listed; None if the servers agree, or the real one has no answer.

        After the steps all kinds are listed, and, if `watches`, watched from the beginning.
        """
        performances = [Performance(engine, namespace) for engine in (self.embedded, self.real)]
        try:
            asked = await asyncio.gather(*(_perform(each, steps, watches=watches) for each in performances))
        except UnansweredError:
            return None
        await asyncio.gather(*(performance.give_back() for performance in performances))
        embedded, others = (performance.outcomes for performance in performances)
        for found in differences_between(embedded, others):
            known = known_as(asked[0][found.step], found)
            if known is None:
                return found
            if found.where == "status" or known.is_lasting:
                return None  # what one server has done and the other has not makes everything else differ
        return None


async def _perform(performance: Performance, steps: Sequence[Step], *, watches: bool) -> list[Step]:
    """The steps that were asked, those at the end included."""
    since = await performance.prepare()
    lists = [Step("GET", kind.collection(), _whose(kind.namespaced)) for kind in kinds_of(steps)]
    await performance.perform([*steps, *lists])
    watched = [_watch(each, since) for each in lists] if watches else []
    await performance.perform_together(watched)
    return [*steps, *lists, *watched]


def _whose(namespaced: bool) -> tuple[tuple[str, str], ...]:
    return () if namespaced else (OWN,)


def _watch(listed: Step, since: str) -> Step:
    query = (("watch", "true"), ("resourceVersion", since), ("timeoutSeconds", "1"), *listed.query)
    return Step("GET", listed.path, query)


@asynccontextmanager
async def running(cluster: rig.Cluster) -> AsyncIterator[Pair]:
    """The rig's server without its controllers, which would write too, and a fresh embedded one beside it."""
    with cluster.suspended("kube-controller-manager"):
        async with real(cluster) as theirs, EmbeddedCluster() as embedded:
            pair = Pair(Embedded(embedded), theirs)
            await asyncio.gather(_install(pair.embedded), _install(pair.real))
            yield pair


async def _install(engine: Engine) -> None:
    for definition in DEFINITIONS:
        answer = await engine.ask(Step("POST", _DEFINITIONS, body=definition))
        assert answer.status in {201, 409}, answer
    clock = SystemClock()
    async with asyncio.timeout(_READY_SECONDS):
        for kind in CUSTOM:
            for version in kind.versions:
                path = kind.collection(version).replace("$ns", "default")
                while (await engine.ask(Step("GET", path))).status != 200:
                    await clock.sleep(0.05)
