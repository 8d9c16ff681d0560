"""The published CA bundle never becomes older, however replicas that see the Secret late take turns."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from example_counts import examples
from navarch.errors import AlreadyExists, Conflict
from navarch.webhook.publication import Publication, Published, bring_up_to_date

REPLICAS = st.integers(min_value=0, max_value=2)
OBJECTS = st.integers(min_value=0, max_value=1)


@types.coroutine
def answer_of_the_server() -> Generator[None, None, None]:
    """A request: other replicas act before it arrives, and before its answer does."""
    yield


class Object:
    """A configuration in the cluster: which release declared it, and the version of the Secret that its bundle is of."""

    def __init__(self) -> None:
        self.stored: Published | None = None
        self.versions = 0
        self.bundles: list[int] = []

    def put(self, release: int, bundle: bytes) -> None:
        self.versions += 1
        self.stored = {"version": self.versions, "release": release, "bundle": bundle}
        self.bundles.append(int(bundle))


class Replica:
    """One replica: its trust, as late as its watch, and the call that is under way."""

    def __init__(self, cluster: Replicas, release: int) -> None:
        self.cluster, self.release, self.seen = cluster, release, 1
        self.call: Coroutine[Any, Any, bool] | None = None

    @property
    def ca_bundle(self) -> bytes:
        return str(self.seen).encode()

    async def refresh(self) -> None:
        await answer_of_the_server()
        self.seen = self.cluster.secret
        await answer_of_the_server()


class Target:
    """What one replica does to one object; its cache may have any version of it."""

    def __init__(self, target: Object, replica: Replica, cached: Published | None) -> None:
        self.name, self._object, self._replica, self._cached = "configuration", target, replica, cached

    def cached(self) -> Published | None:
        return self._cached

    async def read(self) -> Published | None:
        await answer_of_the_server()
        found = self._object.stored
        await answer_of_the_server()
        return found

    def is_current(self, found: Published | None, bundle: bytes) -> bool:
        return found is not None and found["release"] == self._replica.release and bundle in (b"", found["bundle"])

    def has_bundle(self, found: Published | None, bundle: bytes) -> bool:
        return found is not None and found["bundle"] == bundle

    def is_foreign(self, found: Published | None) -> bool:
        return found is not None and found["release"] != self._replica.release

    async def write(self, found: Published | None, bundle: bytes) -> None:
        await answer_of_the_server()
        stored = self._object.stored
        if found is None and stored is not None:
            raise AlreadyExists("exists", code=409)
        if found is not None and found != stored:
            raise Conflict("was changed", code=409)
        self._object.put(self._replica.release, bundle)
        await answer_of_the_server()


class Replicas(RuleBasedStateMachine):
    """Two replicas of one release and one of the next, two configurations, and a Secret that gets new CAs."""

    @initialize()
    def begin(self) -> None:
        self.secret, self.leader = 1, 0
        self.objects = [Object(), Object()]
        self.replicas = [Replica(self, release) for release in (1, 1, 2)]
        self.past: list[Published] = []

    @rule()
    def rotate(self) -> None:
        """The Secret gets another CA."""
        self.secret += 1

    @rule(replica=REPLICAS)
    def see_the_secret(self, replica: int) -> None:
        """The watch of one replica, which may be arbitrarily late, shows the Secret."""
        self.replicas[replica].seen = self.secret

    @rule(replica=REPLICAS)
    def lead(self, replica: int) -> None:
        self.leader = replica

    @rule(place=OBJECTS)
    def delete(self, place: int) -> None:
        """Somebody deletes a configuration: any replica creates it again, and nothing is published until then."""
        self.objects[place].stored = None
        self.objects[place].bundles.clear()

    @rule(place=OBJECTS, bundle=st.just(b"0"))
    def edit(self, place: int, bundle: bytes) -> None:
        """Somebody writes another bundle into it."""
        if (stored := self.objects[place].stored) is not None:
            self.objects[place].put(stored["release"], bundle)
            self.objects[place].bundles.pop()

    @rule(replica=REPLICAS, place=OBJECTS, late=st.booleans())
    def begin_a_pass(self, replica: int, place: int, *, late: bool) -> None:
        acting, chosen = self.replicas[replica], self.objects[place]
        if acting.call is None:
            cached = None if late else chosen.stored
            publication: Publication = Target(chosen, acting, cached)
            acting.call = bring_up_to_date(publication, acting, leading=self.leader == replica, changes=lambda *_: None)

    @precondition(lambda self: any(each.call for each in self.replicas))
    @rule(replica=REPLICAS, requests=st.sampled_from([1, 2, 3, 5, 100]))
    def go_on(self, replica: int, requests: int) -> None:
        """A replica gets the answers to some of its requests."""
        acting = self.replicas[replica]
        for _ in range(requests):
            if acting.call is None:
                return
            try:
                acting.call.send(None)
            except StopIteration:
                acting.call = None

    @invariant()
    def no_bundle_becomes_older(self) -> None:
        for each in self.objects:
            assert each.bundles == sorted(each.bundles), f"expected bundles that become newer, got {each.bundles}"

    @rule()
    def come_to_rest(self) -> None:
        """Once everybody has seen everything, all configurations are the leader's, with the newest bundle."""
        for number in range(3):
            self.go_on(number, 1000)
        for replica in self.replicas:
            replica.seen = self.secret
        for place in range(2):
            for number in (0, 1, 2, self.leader):
                self.begin_a_pass(number, place, late=True)
                self.go_on(number, 1000)
            stored = self.objects[place].stored
            assert stored is not None
            assert (stored["release"], stored["bundle"]) == (
                self.replicas[self.leader].release,
                str(self.secret).encode(),
            )

    def teardown(self) -> None:
        for each in self.replicas:
            if each.call is not None:
                each.call.close()


Replicas.TestCase.settings = examples(200, stateful_step_count=50, deadline=None)
TestReplicas = Replicas.TestCase
