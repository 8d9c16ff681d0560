"""Admission webhooks of an operator, called over HTTPS by either API server."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from certificates import sign
from navarch import Operator, Resource, Spec, Status, WebhookServer
from navarch.api import Dynamic, Kind
from navarch.client import Client, Config
from navarch.errors import AlreadyExists, ApiError, Forbidden, Invalid, NavarchError, ServerError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.autoscaling.v1 import Scale as ScaleObject
from navarch.k8s.core.v1 import ConfigMap, Namespace, Pod, Secret, Service, ServiceAccount, ServiceSpec
from navarch.k8s.policy.v1 import Eviction
from navarch.operator import remove_webhooks, serve
from navarch.webhook import Review
from navarch.webhook.configurations import VALIDATING


class ShelfSpec(Spec):
    books: int = 1


class ShelfStatus(Status):
    read: int = 0


class Shelf(Resource[ShelfSpec, ShelfStatus], group="library.example.com", version="v1"):
    """Holds books."""


POD: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}


@pytest.fixture
def files(tmp_path: Path, config: Config) -> dict[str, Path]:
    """A certificate for loopback; the API server has to be reached over HTTPS, too."""
    return written(tmp_path, "127.0.0.1")


def written(folder: Path, host: str) -> dict[str, Path]:
    authority = sign("authority")
    serving = sign("webhooks", authority, host=host)
    for name, content in (("ca.pem", authority.pem), ("tls.pem", serving.pem), ("key.pem", serving.key)):
        (folder / name).write_bytes(content)
    return {"authority": folder / "ca.pem", "certificate": folder / "tls.pem", "key": folder / "key.pem"}


def new_operator(client: Client, **server: Any) -> Operator:
    """An operator for the namespace of the test alone."""
    namespace = client.options.namespace
    return Operator(f"op-{namespace}", namespaces=(namespace,), election=False, webhook_server=WebhookServer(**server))


@asynccontextmanager
async def running(client: Client, operator: Operator) -> AsyncIterator[None]:
    """Runs the operator; its webhooks are in place when the block begins, and gone after it."""
    prepared = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(client, operator, prepared=prepared))
            serving.add_done_callback(lambda _: prepared.set())
            await asyncio.wait_for(prepared.wait(), 60)
            try:
                if not serving.done():
                    yield
            finally:
                serving.cancel()
    finally:
        await remove_webhooks(client, operator.name)


async def enforced(attempt: Callable[[], Any]) -> ApiError:
    """The refusal of a request, as soon as the API server knows of the webhook: it hears of it by a watch."""
    async with asyncio.timeout(30):
        while True:
            try:
                await attempt()
            except (Forbidden, Invalid, ServerError) as refusal:
                return refusal


async def test_validation_refuses_with_causes(client: Client, files: dict[str, Path]) -> None:
    """A denied field is 422 Invalid with its cause, and the message names the webhook."""
    operator = new_operator(client, **files)

    @operator.validate(ConfigMap, operations=("CREATE",))
    async def check(config: ConfigMap, review: Review[ConfigMap]) -> None:
        assert review.operation == "CREATE"
        if (config.data or {}).get("size") == "0":
            review.deny("data[size]", "must be positive")

    dry = client.using(dry_run=True)
    async with running(client, operator):
        refusal = await enforced(lambda: dry.create(ConfigMap(name="x-refused", data={"size": "0"})))
        assert isinstance(refusal, Invalid)
        assert [(cause.field, cause.reason) for cause in refusal.causes] == [("data[size]", "FieldValueInvalid")]
        assert 'admission webhook "check.configmaps.core" denied the request' in refusal.message
        await client.create(ConfigMap(name="good", data={"size": "1"}))


async def test_update_and_deletion_are_seen(client: Client, files: dict[str, Path]) -> None:
    """An UPDATE has the old object; a DELETE has the deleted one."""
    operator = new_operator(client, **files)

    @operator.validate(ConfigMap, operations=("UPDATE", "DELETE"), labels={"kept": "yes"})
    def keep(config: ConfigMap, review: Review[ConfigMap]) -> None:
        assert review.old is not None
        if review.operation == "DELETE" or review.old.data != config.data:
            review.deny(
                f"{review.operation} of {(review.old.data or {})['a']} by {'masters' if review.groups else 'nobody'}"
            )

    made = await client.create(ConfigMap(name="c", labels={"kept": "yes"}, data={"a": "1"}))
    async with running(client, operator):
        refusal = await enforced(lambda: client.delete(ConfigMap, "c"))
        assert "DELETE of 1 by masters" in refusal.message
        made.data = {"a": "2"}
        with pytest.raises(Forbidden, match="UPDATE of 1"):
            await client.replace(made)


async def test_mutation_patches_the_object(client: Client, files: dict[str, Path]) -> None:
    """The difference is stored; fields that the class lacks stay."""
    operator = new_operator(client, **files)
    seen: list[bool] = []

    @operator.mutate(Shelf)
    def fill(shelf: Shelf, review: Review[Shelf]) -> None:
        seen.append(review.dry_run)
        shelf.spec.books += 1
        shelf.labels["filled"] = "yes"
        review.warn("filled")

    @operator.controller(Shelf)
    async def reconcile(shelf: Shelf, ctx: object) -> None: ...

    dry = client.using(dry_run=True)
    async with running(client, operator):
        async with asyncio.timeout(30):
            while "filled" not in (made := await dry.create(Shelf(name="s"))).labels:
                pass
        assert made.spec.books == 2
        assert seen[-1] is True
        assert (await client.create(Shelf(name="s"))).spec.books == 2
        assert seen[-1] is False


async def test_match_conditions_and_selectors_choose_the_requests(client: Client, files: dict[str, Path]) -> None:
    """Only requests that fulfil all of them are seen."""
    operator = new_operator(client, **files)

    @operator.validate(
        ConfigMap, labels="team in (a,b)", match_conditions={"named": "object.metadata.name.startsWith('x')"}
    )
    async def refuse(config: ConfigMap, review: Review[ConfigMap]) -> None:
        review.deny("seen")

    dry = client.using(dry_run=True)
    async with running(client, operator):
        refusal = await enforced(lambda: dry.create(ConfigMap(name="x-refused", labels={"team": "b"})))
        assert "seen" in refusal.message
        await client.create(ConfigMap(name="y", labels={"team": "a"}))
        await client.create(ConfigMap(name="x", labels={"team": "c"}))


async def test_subresources_are_seen(client: Client, files: dict[str, Path]) -> None:
    """Scale, eviction and status have the objects of their own kinds."""
    operator = new_operator(client, **files)

    @operator.validate(ScaleObject, on=Deployment, subresource="scale", operations=("UPDATE",))
    async def check_scale(scale: ScaleObject, review: Review[ScaleObject]) -> None:
        assert review.subresource == "scale"
        if (scale.spec.replicas or 0) > 5:
            review.deny("spec.replicas", "too many")

    @operator.validate(Eviction, on=Pod, subresource="eviction", operations=("CREATE",))
    def check_eviction(eviction: Eviction, review: Review[Eviction]) -> None:
        review.deny(f"{eviction.name} stays")

    @operator.validate(Pod, subresource="status", operations=("UPDATE",))
    def check_status(pod: Pod, review: Review[Pod]) -> None:
        review.deny("status.phase", "nobody may say so")

    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": POD},
        },
    }
    with suppress(AlreadyExists):
        await client.create(ServiceAccount(name="default"))
    await client.create(Dynamic(deployment))
    pod = await client.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD}))
    async with running(client, operator):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        refusal = await enforced(lambda: client.create_subresource(Pod, "p", "eviction", Dynamic(body)))
        assert "p stays" in refusal.message
        pod["status"] = {"phase": "Failed"}
        refusal = await enforced(lambda: client.replace_status(pod))
        assert [cause.field for cause in refusal.causes] == ["status.phase"]
        refusal = await enforced(lambda: client.scale(Deployment, "web", 6))
        assert [cause.field for cause in refusal.causes] == ["spec.replicas"]


async def test_exec_is_seen(client: Client, files: dict[str, Path]) -> None:
    """An exec is a CONNECT with its options as the object, of a kind without a class."""
    operator = new_operator(client, **files)
    options = Kind("", "v1", "PodExecOptions", plural="podexecoptions")

    @operator.validate(options, on=Pod, subresource="exec", operations=("CONNECT",))
    async def refuse(asked: Dynamic, review: Review[Dynamic]) -> None:
        review.deny(f"nobody runs {' '.join(asked['command'])} in {review.name}")

    with suppress(AlreadyExists):
        await client.create(ServiceAccount(name="default"))
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD}))
    async with running(client, operator):
        async with asyncio.timeout(30):
            while "nobody runs" not in (told := await _refusal_of_exec(client)):
                pass
        assert "nobody runs id -u in p" in told


async def _refusal_of_exec(client: Client) -> str:
    """A pod without a node refuses it too, until the API server knows of the webhook."""
    try:
        await client.exec("p", ["id", "-u"])
    except NavarchError as refusal:
        return str(refusal)
    return ""


async def test_cluster_scoped_kind_is_seen(client: Client, files: dict[str, Path]) -> None:
    """Namespaces are in no namespace, also for an operator of some namespaces."""
    operator = new_operator(client, **files)
    prefix = client.options.namespace

    @operator.validate(
        Namespace, operations=("CREATE",), match_conditions={"ours": f"object.metadata.name.startsWith('{prefix}')"}
    )
    async def refuse(namespace: Namespace, review: Review[Namespace]) -> None:
        review.deny("metadata.name", "is taken")

    async with running(client, operator):
        dry = client.using(dry_run=True)
        refusal = await enforced(lambda: dry.create(Namespace(name=f"{prefix}-two")))
        assert "is taken" in refusal.message


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_failure_policy_decides_over_a_function_that_raises(
    client: Client, files: dict[str, Path], policy: Any
) -> None:
    """Under Fail a request is refused and the message names object and cause; under Ignore it passes."""
    operator = new_operator(client, **files)

    @operator.validate(ConfigMap, failure_policy=policy, labels={"failing": "yes"})
    async def fail(config: ConfigMap, review: Review[ConfigMap]) -> None:
        raise RuntimeError("no zone")

    @operator.validate(ConfigMap, labels={"refused": "yes"})
    async def refuse(config: ConfigMap, review: Review[ConfigMap]) -> None:
        review.deny("no")

    dry = client.using(dry_run=True)
    async with running(client, operator):
        await enforced(lambda: dry.create(ConfigMap(name="x-refused", labels={"refused": "yes"})))
        if policy == "Ignore":
            await client.create(ConfigMap(name="c", labels={"failing": "yes"}))
            return
        with pytest.raises(ServerError) as refused:
            await client.create(ConfigMap(name="c", labels={"failing": "yes"}))
        assert f"failed for ConfigMap {client.options.namespace}/c: RuntimeError: no zone" in refused.value.message


async def test_operator_issues_its_certificate(client: Client, config: Config) -> None:
    """Without files, certificate and CA are in one Secret, and the configurations trust that CA."""
    operator = new_operator(client)

    @operator.controller(Shelf)
    async def reconcile(shelf: Shelf, ctx: object) -> None: ...

    @operator.validate(Shelf)
    async def refuse(shelf: Shelf, review: Review[Shelf]) -> None:
        if shelf.spec.books == 13:
            review.deny("as asked")

    dry = client.using(dry_run=True)
    async with running(client, operator):
        refusal = await enforced(lambda: dry.create(Shelf(name="s", spec=ShelfSpec(books=13))))
        assert "as asked" in refusal.message
        secret = await client.get(Secret, f"{operator.name}-webhook-tls")
        assert {"ca.crt", "tls.crt", "tls.key"} <= (secret.data or {}).keys()
        found = await client.get(VALIDATING, operator.name)
        bundle = b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
        assert bundle == (secret.data or {})["ca.crt"]
        await client.create(Shelf(name="good"))


async def test_webhooks_are_reached_by_a_service(client: Client, config: Config, tmp_path: Path) -> None:
    """The name of the Service is what the certificate has to have; here it stands for this machine."""
    namespace = client.options.namespace
    server = written(tmp_path, f"hooks.{namespace}.svc")
    operator = new_operator(client, service="hooks", namespace=namespace, port=0, listen="127.0.0.1:0", **server)
    await client.create(Service(name="hooks", spec=ServiceSpec(type="ExternalName", external_name="localhost")))

    @operator.controller(Shelf)
    async def reconcile(shelf: Shelf, ctx: object) -> None: ...

    @operator.validate(Shelf)
    async def refuse(shelf: Shelf, review: Review[Shelf]) -> None:
        if shelf.spec.books == 13:
            review.deny("as asked")

    @operator.validate(ConfigMap)
    async def refuse_all(config: ConfigMap, review: Review[ConfigMap]) -> None:
        review.deny("never asked")

    dry = client.using(dry_run=True)
    async with running(client, operator):
        refusal = await enforced(lambda: dry.create(Shelf(name="s", spec=ShelfSpec(books=13))))
        assert "as asked" in refusal.message
        await client.create(ConfigMap(name="of-the-operator-itself"))
