"""What docs/controllers.md says of its controllers is so."""

from __future__ import annotations

import asyncio
import logging
import threading
from types import ModuleType
from typing import Any

import pytest

from docs.pages import Trial, module_of
from navarch.client import MergePatch
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.queue import QueueOptions


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return module_of("controllers.md", tmp_path_factory.mktemp("controllers"))


def website(page: ModuleType, name: str = "flowers", **spec: Any) -> Any:
    return page.Website(name=name, spec=page.WebsiteSpec(**{"title": " Flowers ", **spec}))


def theme(name: str = "plain", **data: str) -> ConfigMap:
    return ConfigMap(name=name, labels={"kind": "theme"}, data=data)


async def test_publish_applies_a_child_and_writes_the_status_once(page: ModuleType) -> None:
    """Two writes, and neither calls it again; the child belongs to the website, whose spec nobody touched."""
    trial = Trial(page.publish)
    async with trial.running():
        made = await trial.client.create(website(page))
        await trial.until(lambda: "status" in trial.object(page.Website, "flowers"), "a status")
        await trial.until_reconciled(1)
    child, found = trial.object(ConfigMap, "flowers-en"), trial.object(page.Website, "flowers")
    assert child["data"] == {"title": "Flowers"}
    assert child["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
    assert found["status"]["pages"] == ["flowers-en"]
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert found["spec"]["title"] == " Flowers "
    assert found["metadata"].keys().isdisjoint({"annotations", "finalizers"})


async def test_foreign_change_of_a_child_calls_the_reconciler_which_mends_it(page: ModuleType) -> None:
    """And nothing is sent for a child that is as it was applied."""
    trial = Trial(page.publish)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        await trial.client.patch(ConfigMap, "flowers-en", MergePatch({"data": {"title": "Weeds"}}))
        await trial.until_reconciled(2)
        assert trial.object(ConfigMap, "flowers-en")["data"] == {"title": "Flowers"}
        asked = len(trial.server.requests)
        page.publish.trigger("flowers", namespace="default")
        await trial.until_reconciled(3)
    assert [request.method for request in trial.server.requests[asked:]].count("PATCH") == 0


async def test_dress_retries_then_waits_an_hour(page: ModuleType) -> None:
    """After ten seconds as it asked for; then a condition, and again when the hour is over."""
    trial = Trial(page.dress)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        await trial.client.create(theme())
        await trial.clock.advance(9)
        await trial.until_reconciled(1)
        await trial.clock.advance(1)
        await trial.until_reconciled(2)
        (condition,) = trial.object(page.Website, "flowers")["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Dressed", "True")
        await trial.clock.advance(3600)
        await trial.until_reconciled(3)


async def test_dress_gives_up_until_the_object_changes(page: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """With an event, and no delay brings it back."""
    trial = Trial(page.dress)
    async with trial.running():
        await trial.client.create(website(page, theme="-"))
        await trial.until_reconciled(1)
        await trial.clock.advance(100_000)
        await trial.until_reconciled(1)
        assert ("Warning", "GaveUp") in trial.events()
        await trial.client.patch(page.Website, "flowers", MergePatch({"spec": {"theme": "plain"}}))
        await trial.until_reconciled(2)


async def test_failures_are_told_once_and_retried_with_growing_delays(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From 5 ms to 1000 s, as the table says."""

    async def failing(website: Any, ctx: Any) -> None:
        raise ZeroDivisionError("divided by zero")

    monkeypatch.setattr(page.publish, "reconcile", failing)
    trial = Trial(page.publish)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until(lambda: len(trial.reconciled) == 1, "a reconcile")
        await trial.clock.advance(5)
        assert len(trial.reconciled) > 5, f"expected quick retries first, got {len(trial.reconciled)} in 5 s"
        assert len(trial.reconciled) < 15, f"expected slower and slower ones, got {len(trial.reconciled)} in 5 s"
    told = [record for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]
    assert len(told) == 1
    backoff = QueueOptions().backoff
    assert (backoff.initial, backoff.maximum) == (0.005, 1000.0)


async def test_object_that_does_not_fit_is_marked_and_stops_no_other(page: ModuleType) -> None:
    """The condition ModelMismatch, an event, and the next object is reconciled."""
    trial = Trial(page.publish)
    async with trial.running():
        await trial.client.create(website(page, "broken"))
        await trial.until_reconciled(1)
        await trial.client.patch(page.Website.__kind__, "broken", MergePatch({"spec": {"title": 7}}))
        await trial.client.create(website(page, "whole"))
        await trial.until_reconciled(2)
        await trial.until(lambda: bool(trial.events()), "an event")
        conditions = trial.object(page.Website, "broken")["status"]["conditions"]
    assert [condition["type"] for condition in conditions] == ["ModelMismatch"]


async def test_render_works_in_a_thread(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """And waits there for what a coroutine would await."""
    inner, threads = page.render.reconcile, []

    def noting(website: Any, ctx: Any) -> None:
        threads.append(threading.current_thread())
        inner(website, ctx)

    monkeypatch.setattr(page.render, "reconcile", noting)
    trial = Trial(page.render)
    async with trial.running():
        await trial.client.create(theme(colour="red"))
        await trial.client.create(website(page))
        await trial.until(lambda: bool(trial.object(ConfigMap, "flowers-page")), "the page")
    assert "color: red" in trial.object(ConfigMap, "flowers-page")["data"]["html"]
    assert threads[0] is not threading.main_thread()


async def test_coroutine_is_cut_off_at_its_limit(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """And comes again."""

    async def endless(website: Any, ctx: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(page.publish, "reconcile", endless)
    trial = Trial(page.publish)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        await trial.clock.advance(302)
        await trial.until_reconciled(2)


async def test_register_cleans_up_before_the_object_goes(page: ModuleType) -> None:
    """The finalizer has the name that the page says, and is there before the reconciler is called."""
    trial = Trial(page.register)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        await trial.until(lambda: "default.flowers" in trial.names(ConfigMap), "the entry")
        finalizers = trial.object(page.Website, "flowers")["metadata"]["finalizers"]
        assert finalizers == ["web.example.com/websites.register"]
        await trial.client.delete(page.Website, "flowers")
        await trial.until(lambda: not trial.object(page.Website, "flowers"), "the website to be gone")
        await trial.until_reconciled(1)
    assert trial.names(ConfigMap) == []


async def test_launch_heeds_its_predicate(page: ModuleType) -> None:
    """Called for the label alone."""
    trial = Trial(page.launch)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.client.patch(page.Website, "flowers", MergePatch({"spec": {"title": "Roses"}}))
        await trial.clock.settle()
        await trial.until_reconciled(0)
        await trial.client.patch(page.Website, "flowers", MergePatch({"metadata": {"labels": {"approved": "yes"}}}))
        await trial.until_reconciled(1)
        await trial.until(lambda: ("Normal", "Launched") in trial.events(), "the event")


@pytest.mark.parametrize(("name", "calls"), [("publish", 1), ("audit", 2)])
async def test_status_of_others_counts_only_where_every_change_does(page: ModuleType, name: str, calls: int) -> None:
    """By default it does not."""
    trial = Trial(getattr(page, name))
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        await trial.client.patch(
            page.Website, "flowers", MergePatch({"status": {"pages": ["elsewhere"]}}), subresource="status"
        )
        await trial.until_reconciled(calls)


async def test_translate_prunes_what_is_no_longer_wanted(page: ModuleType) -> None:
    """Its own children alone."""
    trial = Trial(page.translate)
    async with trial.running():
        await trial.client.create(ConfigMap(name="flowers-fr"))
        await trial.client.create(website(page, languages=["en", "de"]))
        await trial.until(lambda: trial.names(ConfigMap) == ["flowers-de", "flowers-en", "flowers-fr"], "two pages")
        await trial.client.patch(page.Website, "flowers", MergePatch({"spec": {"languages": ["de"]}}))
        await trial.until(lambda: trial.names(ConfigMap) == ["flowers-de", "flowers-fr"], "one page")
        await trial.until(
            lambda: trial.object(page.Website, "flowers")["status"]["pages"] == ["flowers-de"], "its name"
        )


async def test_lock_makes_a_password_once(page: ModuleType) -> None:
    """It stays as it is, and is made anew only when it is gone."""
    trial = Trial(page.lock)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until_reconciled(1)
        made = trial.object(Secret, "flowers-password")
        page.lock.trigger("flowers", namespace="default")
        await trial.until_reconciled(2)
        assert trial.object(Secret, "flowers-password") == made
        await trial.client.delete(Secret, "flowers-password")
        await trial.until_reconciled(3)
    again = trial.object(Secret, "flowers-password")
    assert again["stringData"]["password"] != made["stringData"]["password"]


async def test_paint_is_called_for_the_users_of_a_theme(page: ModuleType) -> None:
    """And for nobody else."""
    trial = Trial(page.paint)
    async with trial.running():
        await trial.client.create(website(page, "red", theme="red"))
        await trial.client.create(website(page, "blue", theme="blue"))
        await trial.until_reconciled(2)
        await trial.client.create(theme("red"))
        await trial.until_reconciled(3)
        await trial.client.create(ConfigMap(name="blue"))
        await trial.clock.settle()
        await trial.until_reconciled(3)
    assert trial.reconciled[2][0].name == "red"


async def test_check_records_an_event_and_tells_why(page: ModuleType) -> None:
    """A warning while the certificate is missing."""
    trial = Trial(page.check)
    async with trial.running():
        await trial.client.create(website(page))
        await trial.until(lambda: trial.events() == [("Warning", "NoCertificate")], "the event")
        await trial.client.create(Secret(name="roses-tls"))
        await trial.client.create(website(page, "roses"))
        await trial.until_reconciled(2)
    assert trial.events() == [("Warning", "NoCertificate")]
    assert trial.reconciled[1][1] == ("Website was created",)


async def test_background_triggers_a_reconcile(page: ModuleType) -> None:
    """For the reason that it gives; here it runs once everything has been listed."""
    trial = Trial(page.publish, page.operator.backgrounds)
    await trial.client.create(website(page), namespace="shop")
    async with trial.running():
        await trial.until(
            lambda: any("an order came in" in reasons for _, reasons in trial.reconciled), "a reconcile for that reason"
        )
