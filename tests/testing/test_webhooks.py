"""Webhooks of an operator on a cluster in the test's own process: no sockets, no certificates, virtual time."""

from __future__ import annotations

from copy import deepcopy

import pytest

from navarch import Operator
from navarch.api import Dynamic
from navarch.errors import ConfigError, Forbidden, Invalid, NotFound, ServerError
from navarch.k8s.core.v1 import ConfigMap, Pod
from navarch.operator import remove_webhooks
from navarch.testing import Cluster
from navarch.webhook import Review
from navarch.webhook.configurations import MUTATING, VALIDATING
from webhook.caches import Webcache, new_operator, webcache


async def test_requests_are_admitted_in_process(cluster: Cluster) -> None:
    """`cluster.run` returns with the webhooks in place: they deny, warn and patch from the first request on."""
    async with cluster.run(new_operator()):
        kept = webcache(3)
        kept.annotations["keep"] = "yes"
        made = await cluster.create(kept)
        made.spec.size = 2
        with pytest.raises(Invalid) as refused:
            await cluster.client.replace(made)
        assert [cause.field for cause in refused.value.causes] == ["spec.size"]
        assert 'admission webhook "check-size.webcaches.cache.example.com" denied the request' in str(refused.value)
        with pytest.raises(Forbidden, match="it is kept"):
            await cluster.delete(Webcache, "cache")
        made.spec.size = 4
        assert (await cluster.client.replace(made)).spec.size == 4
        labelled = await cluster.create(ConfigMap(name="c", labels={"cache": "yes"}))
        other = await cluster.create(ConfigMap(name="d"))
        assert (labelled.labels.get("labelled"), other.labels.get("labelled")) == ("yes", None)


async def test_configuration_is_repaired(cluster: Cluster) -> None:
    """An edit is undone and a deletion repaired, also an addition that server-side apply would leave alone."""
    async with cluster.run(new_operator()):
        found = await cluster.client.get(VALIDATING, "cache-operator")
        wanted = deepcopy(found["webhooks"])
        found["webhooks"][0]["matchConditions"].append({"name": "never", "expression": "false"})
        found["webhooks"][1]["failurePolicy"] = "Ignore"
        await cluster.client.replace(found)
        await cluster.until(VALIDATING, "cache-operator", lambda it: it["webhooks"] == wanted)
        await cluster.delete(MUTATING, "cache-operator")
        await cluster.until(MUTATING, "cache-operator", lambda it: len(it["webhooks"]) == 1)


async def test_webhooks_are_removed_with_one_call(cluster: Cluster) -> None:
    """`remove_webhooks` deletes both configurations; a second call finds nothing to do."""
    async with cluster.run(new_operator()):
        pass
    for _ in range(2):
        await remove_webhooks(cluster.client, "cache-operator")
    for kind in (MUTATING, VALIDATING):
        with pytest.raises(NotFound):
            await cluster.get(kind, "cache-operator")


async def test_verify_demands_the_configurations(cluster: Cluster) -> None:
    """`webhooks="verify"` writes nothing: it refuses to start without the right configurations."""
    operator = Operator("cache-operator", webhooks="verify", election=False)
    operator.validate(Webcache, name="check")(lambda it, review: None)
    with pytest.raises(ConfigError, match="ValidatingWebhookConfiguration cache-operator is missing"):
        async with cluster.run(operator):
            pass
    installing = Operator("cache-operator", election=False)
    installing.validate(Webcache, name="check")(lambda it, review: None)
    async with cluster.run(installing):
        pass
    async with cluster.run(operator):
        pass


async def test_ignore_leaves_the_configurations_to_others(cluster: Cluster) -> None:
    """`webhooks="ignore"` serves the webhooks and does not look at the configurations."""
    operator = Operator("cache-operator", webhooks="ignore", election=False)
    operator.validate(ConfigMap, name="check")(lambda it, review: review.deny("no"))
    async with cluster.run(operator):
        await cluster.create(ConfigMap(name="c"))
        with pytest.raises(NotFound):
            await cluster.get(VALIDATING, "cache-operator")


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_failure_policy_decides_over_a_function_that_raises(cluster: Cluster, policy: str) -> None:
    """Under Fail the request is refused and the error names object and cause; under Ignore it passes."""
    operator = Operator("cache-operator", election=False)

    @operator.validate(ConfigMap, failure_policy=policy)  # type: ignore[arg-type]  # one of the two
    async def fail(it: ConfigMap, review: Review[ConfigMap]) -> None:
        raise RuntimeError("no zone")

    async with cluster.run(operator):
        if policy == "Ignore":
            await cluster.create(ConfigMap(name="c"))
        else:
            with pytest.raises(
                ServerError, match=r"fail.configmaps.core failed for ConfigMap default/c: RuntimeError: no zone"
            ):
                await cluster.create(ConfigMap(name="c"))


async def test_review_reads_from_the_cache(cluster: Cluster) -> None:
    """A function sees objects of the kinds in `reads=` from its first request on, in a thread too."""
    operator = Operator("cache-operator", election=False)

    @operator.validate(Pod, reads=(ConfigMap,))
    def check(pod: Pod, review: Review[Pod]) -> None:
        if review.get(ConfigMap, pod.annotations.get("config", "")) is None:
            review.deny("metadata.annotations[config]", "no such ConfigMap")

    await cluster.create(ConfigMap(name="there"))
    async with cluster.run(operator):
        for name in ("there", "missing"):
            pod = Dynamic(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name, "annotations": {"config": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
            )
            if name == "there":
                await cluster.create(pod)
            else:
                with pytest.raises(Invalid, match='Invalid value: "missing": no such ConfigMap'):
                    await cluster.create(pod)


async def test_webhooks_need_only_the_declared_permissions(cluster: Cluster) -> None:
    """An operator with the permissions of `needed_by` installs and repairs its configurations."""
    operator = new_operator()
    client = await cluster.client_for(operator)
    async with cluster.run(operator, client=client):
        await cluster.delete(MUTATING, "cache-operator")
        await cluster.until(MUTATING, "cache-operator", lambda it: len(it["webhooks"]) == 1)
