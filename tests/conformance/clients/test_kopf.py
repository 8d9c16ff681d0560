"""Operators written with kopf: what its handlers are called for, and what it writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import kopf
import pytest

from certificates import sign
from chaos.waiting import until, until_none
from conformance.clients import ships
from conformance.clients.ships import LIMIT, SHIP, Harbour, ship
from conformance.controllers.watching import until_gone
from navarch.api import Dynamic, Kind
from navarch.client import Client, MergePatch
from navarch.errors import ApiError
from navarch.k8s.core.v1 import ConfigMap
from rig import ports

pytestmark = pytest.mark.filterwarnings(  # about connections that kopf leaves behind when its loop ends
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"
EVENT = Kind("", "v1", "Event", plural="events")


@pytest.fixture
async def harbour(client: Client, kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Harbour:
    await client.install(ships.DEFINITION)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    return Harbour(client.options.namespace)


async def becomes(client: Client, name: str, **status: Any) -> Dynamic:
    """Waits until the ship has all of this in its status."""
    found: list[Dynamic] = []

    async def look() -> str | None:
        found[:] = [await client.get(SHIP, name)]
        there = found[0].get("status", {})
        return None if status.items() <= there.items() else f"expected a status with {status}, got {there}"

    await until_none(look, seconds=LIMIT)
    return found[0]


async def handled(client: Client, name: str) -> None:
    """Waits until kopf has noted in the ship that it is done with it as it is."""

    async def look() -> str | None:
        found = await client.get(SHIP, name)
        noted = found["metadata"].get("annotations", {})
        return None if LAST_HANDLED in noted else f"expected {LAST_HANDLED} in {noted}"

    await until_none(look, seconds=LIMIT)


async def test_kopf_handles_the_life_of_an_object(client: Client, harbour: Harbour) -> None:
    """Created, updated with a diff, deleted behind a finalizer; results and patches end up in the status."""

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry, id="built")
    def built(spec: Any, patch: Any, **_: Any) -> dict[str, int]:
        patch.status["phase"] = "afloat"
        return {"crew": spec["crew"]}

    @kopf.on.update(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def refitted(diff: Any, patch: Any, **_: Any) -> None:
        harbour.log.extend((each.operation, each.field, each.old, each.new) for each in diff)
        patch.status["phase"] = "refitted"

    @kopf.on.delete(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def scrapped(name: str, **_: Any) -> None:
        harbour.log.append(("scrapped", name))

    with harbour.open():
        await client.create(ship("argo", crew=50))
        made = await becomes(client, "argo", phase="afloat", built={"crew": 50})
        assert made["metadata"]["finalizers"] == [FINALIZER]
        await client.patch(SHIP, "argo", MergePatch({"spec": {"crew": 49}}))
        await becomes(client, "argo", phase="refitted")
        await client.delete(SHIP, "argo")
        await until_gone(client, SHIP, "argo")
    assert harbour.log == [("change", ("spec", "crew"), 50, 49), ("scrapped", "argo")]


async def test_kopf_resumes_what_it_left(client: Client, harbour: Harbour) -> None:
    """An operator that starts again does not create again; what changed meanwhile is an update."""

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry, id="built")
    def built(name: str, **_: Any) -> None:
        harbour.log.append(("built", name))

    @kopf.on.resume(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def met(name: str, **_: Any) -> None:
        harbour.log.append(("met", name))

    @kopf.on.update(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def refitted(name: str, **_: Any) -> None:
        harbour.log.append(("refitted", name))

    with harbour.open():
        for name in ("argo", "nautilus"):
            await client.create(ship(name, crew=1))
        await harbour.logged(("built", "argo"), ("built", "nautilus"))
        for name in ("argo", "nautilus"):
            await handled(client, name)
    await client.patch(SHIP, "nautilus", MergePatch({"spec": {"crew": 2}}))
    with harbour.open():
        await harbour.logged(("met", "argo"), ("refitted", "nautilus"))
    assert harbour.log.count(("built", "argo")) == 1


async def test_kopf_tries_again_and_gives_up(client: Client, harbour: Harbour) -> None:
    """Temporary errors are tried again and their count is kept in the object; permanent ones are not."""

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def floats(retry: int, patch: Any, **_: Any) -> None:
        harbour.log.append(("floats", retry))
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.1)
        patch.status["floats"] = True

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def flies(retry: int, **_: Any) -> None:
        harbour.log.append(("flies", retry))
        raise kopf.PermanentError("ships do not")

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry, backoff=0.1, retries=2)
    def dives(retry: int, **_: Any) -> None:
        harbour.log.append(("dives", retry))
        raise ValueError("leaks")

    with harbour.open():
        await client.create(ship("argo"))
        await becomes(client, "argo", floats=True)
        await harbour.logged(("dives", 1))
    assert sorted(harbour.log) == [("dives", 0), ("dives", 1), ("flies", 0), *(("floats", n) for n in range(3))]


async def test_kopf_keeps_timers_and_daemons(client: Client, harbour: Harbour) -> None:
    """As long as the object is there; a daemon is told to stop before it goes."""

    @kopf.timer(ships.GROUP, ships.PLURAL, registry=harbour.registry, interval=0.05)
    def ticks(**_: Any) -> None:
        harbour.log.append("tick")

    @kopf.daemon(ships.GROUP, ships.PLURAL, registry=harbour.registry, cancellation_timeout=LIMIT)
    async def keeps_watch(stopped: kopf.DaemonStopped, name: str, **_: Any) -> None:
        harbour.log.append(("watching", name))
        harbour.log.append(("stopped", str(await stopped.wait(LIMIT))))

    with harbour.open():
        await client.create(ship("argo"))
        await harbour.logged(("watching", "argo"))
        await until(lambda: harbour.log.count("tick") > 2, "three ticks", seconds=LIMIT)
        await client.delete(SHIP, "argo")
        await until_gone(client, SHIP, "argo")
        assert any(entry[0] == "stopped" and "RESOURCE_DELETED" in entry[1] for entry in harbour.log), harbour.log


async def test_kopf_indexes_and_hears_events(client: Client, harbour: Harbour) -> None:
    """Objects of other kinds, by what they are selected for; each event comes as it is."""

    @kopf.index("configmaps", registry=harbour.registry, id="charts", labels={"chart": kopf.PRESENT})
    def charts(labels: Any, name: str, **_: Any) -> dict[str, str]:
        return {labels["chart"]: name}

    @kopf.on.event(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def heard(event: Any, **indexes: Any) -> None:
        harbour.log.append((event["type"], sorted(name for names in indexes["charts"].values() for name in names)))

    await client.create(ConfigMap(name="aegean", labels={"chart": "sea"}))
    await client.create(ConfigMap(name="other"))
    await client.create(ship("argo"))
    with harbour.open():
        await harbour.logged((None, ["aegean"]))
        await client.patch(SHIP, "argo", MergePatch({"spec": {"crew": 1}}))
        await harbour.logged(("MODIFIED", ["aegean"]))
        await client.delete(ConfigMap, "aegean")
        await client.delete(SHIP, "argo")
        await until(lambda: harbour.log[-1][0] == "DELETED", "the deletion as an event", seconds=LIMIT)


async def test_kopf_watches_fields_and_divides_work(client: Client, harbour: Harbour) -> None:
    """A handler of one field hears of that field only; a handler's own handlers are done one by one."""

    @kopf.on.field(ships.GROUP, ships.PLURAL, registry=harbour.registry, field="spec.flag")
    def flagged(old: Any, new: Any, **_: Any) -> None:
        harbour.log.append(("flag", old, new))

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry, id="built", labels={"fleet": "yes"})
    def built(spec: Any, **_: Any) -> None:
        for mast in spec.get("masts", []):

            @kopf.subhandler(id=mast)
            def raised(mast: str = mast, **_: Any) -> str:
                harbour.log.append(("mast", mast))
                return "up"

    with harbour.open():
        await client.create(ship("argo", {"fleet": "yes"}, flag="red", masts=["fore", "main"]))
        await client.create(ship("raft", masts=["none"]))
        await becomes(client, "argo", **{"built/fore": "up", "built/main": "up"})
        await client.patch(SHIP, "argo", MergePatch({"spec": {"flag": "blue", "crew": 1}}))
        await harbour.logged(("flag", "red", "blue"))
    assert ("mast", "none") not in harbour.log
    assert [entry for entry in harbour.log if entry[0] == "flag"] == [("flag", None, "red"), ("flag", "red", "blue")]


async def test_kopf_makes_children_and_tells_what_it_does(client: Client, harbour: Harbour) -> None:
    """A child knows its owner; the event is about the object."""

    @kopf.on.create(ships.GROUP, ships.PLURAL, registry=harbour.registry, id="built")
    def built(body: Any, **_: Any) -> None:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "log"}}
        kopf.adopt(child)
        kopf.info(body, reason="Built", message="she floats")
        harbour.log.append(child)

    async def look() -> str | None:
        found = [each async for each in client.list(EVENT) if each["reason"] == "Built"]
        return None if found and found[0]["message"] == "she floats" else "expected an event about the ship"

    with harbour.open():
        made = await client.create(ship("argo"))
        await until(lambda: bool(harbour.log), "a child", seconds=LIMIT)
        child = await client.create(Dynamic(harbour.log[0]))
        assert child["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        await until_none(look, seconds=LIMIT)


@pytest.fixture
def webhooks(harbour: Harbour, tmp_path: Path) -> Iterator[None]:
    """kopf serves webhooks, at a port that nobody else is given."""
    authority = sign("ca")
    signed = sign("kopf", authority)
    (tmp_path / "tls.crt").write_bytes(signed.pem)
    (tmp_path / "tls.key").write_bytes(signed.key)
    harbour.settings.admission.managed = "kopf.sea.example.com"
    with ports.reserved(1) as [port]:
        harbour.settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1",
            port=port,
            certfile=tmp_path / "tls.crt",
            pkeyfile=tmp_path / "tls.key",
            cadata=authority.pem,
        )
        yield


@pytest.mark.usefixtures("webhooks")
async def test_kopf_admits_and_changes_objects(client: Client, harbour: Harbour) -> None:
    """By a server of webhooks that it registers itself, and takes away when it ends."""

    @kopf.on.validate(ships.GROUP, ships.PLURAL, registry=harbour.registry)
    def seaworthy(spec: Any, **_: Any) -> None:
        if spec.get("crew", 0) < 1:
            raise kopf.AdmissionError("nobody is aboard", code=499)

    @kopf.on.mutate(ships.GROUP, ships.PLURAL, registry=harbour.registry, operations={"CREATE"})
    def named(patch: kopf.Patch, warnings: list[str], **_: Any) -> None:
        patch.spec["flag"] = "white"
        warnings.append("she had no flag")

    async def is_flagged(flag: str | None) -> str | None:
        try:
            made = await client.using(dry_run=True).create(ship("argo", crew=1))
        except ApiError as error:
            return str(error)
        return None if made["spec"].get("flag") == flag else f"expected the flag {flag}, got {made}"

    with harbour.open():
        await until_none(partial(is_flagged, "white"), seconds=LIMIT)
        with pytest.raises(ApiError, match="nobody is aboard"):
            await client.create(ship("wreck", crew=0))
    await until_none(partial(is_flagged, None), seconds=LIMIT)
