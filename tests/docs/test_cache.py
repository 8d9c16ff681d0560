"""What docs/cache.md says of its cache is so."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from docs.pages import Trial, module_of
from navarch.client import MergePatch
from navarch.k8s.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, Secret


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return module_of("cache.md", tmp_path_factory.mktemp("cache"))


def pod(name: str, node: str) -> Pod:
    return Pod(
        name=name,
        namespace="team-a",
        spec=PodSpec(node_name=node, containers=[Container(name="main")]),
    )


async def census(trial: Trial, page: ModuleType, namespace: str = "team-a") -> Any:
    await trial.client.create(page.Census(name="now", namespace=namespace, spec=page.CensusSpec(node="n1")))


async def test_each_option_keeps_what_it_says(page: ModuleType) -> None:
    """An index finds the pods of a node; secrets come without their data; settings are those of the selection."""
    trial = Trial(page.count, namespaces=("team-*", "!team-x"))
    for namespace in ("team-a", "team-x"):
        await trial.client.create(Namespace(name=namespace))
    for made in (pod("one", "n1"), pod("two", "n2")):
        await trial.client.create(made)
        running = MergePatch({"status": {"phase": "Running"}})
        await trial.client.patch(Pod, made.name, running, namespace="team-a", subresource="status")
    await trial.client.create(Secret(name="key", namespace="team-a", string_data={"password": "hidden"}))
    for name, labels in (("web", {"app": "web"}), ("other", {"app": "db"})):
        await trial.client.create(ConfigMap(name=name, namespace="team-a", labels=labels))
    async with trial.running():
        await census(trial, page, "team-x")
        await census(trial, page)
        await trial.until(lambda: bool(trial.object(page.Census, "now", "team-a").get("status")), "a status")
    status = trial.object(page.Census, "now", "team-a")["status"]
    assert status["pods"] == ["one is Running"]
    assert (status["secrets"], status["settings"]) == (1, 1)
    assert [key.namespace for key, _ in trial.reconciled] == ["team-a"]


async def test_namespaces_change_at_run_time(page: ModuleType) -> None:
    """Objects of one that is new are reconciled, without a restart."""
    trial = Trial(page.count, namespaces=("team-*",))
    await trial.client.create(Namespace(name="shop"))
    async with trial.running():
        await census(trial, page, "shop")
        await trial.until_reconciled(0)
        trial.namespaces.change("team-*", "shop")
        await trial.until_reconciled(1)
    assert page.operator.namespaces.patterns == ("team-*", "shop")
