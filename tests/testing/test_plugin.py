"""The fixture `cluster` works as users have it."""

from __future__ import annotations

import asyncio
import re
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from memcached_operator.api.cache.v1alpha1.memcached import Memcached, MemcachedSpec
from navarch import Context, Operator
from navarch._base.clock import ManualClock
from navarch.api import Model, Object, field
from navarch.client import Client
from navarch.errors import DefinitionError, Forbidden, Invalid, NotFound
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import ConfigMap, Namespace, Pod
from navarch.operator import load_operator
from navarch.testing import Cluster
from testing.test_permissions import PLUGINS

pytest_plugins = ["pytester"]

T = TypeVar("T")
operator = load_operator("memcached_operator")


async def test_scales_to_the_size_asked_for(cluster: Cluster) -> None:
    """The operator and the test of the README run as they stand there."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=3)))
        await cluster.until(Memcached, "cache", lambda m: len(m.status.nodes) == 3)


@pytest.mark.cluster(nodes=1)
async def test_cluster_with_a_node_runs_pods_as_processes(cluster: Cluster) -> None:
    """The pod's process answers at the pod's address."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="cache"))
        ready = lambda found: found.status.ready_replicas == 1  # noqa: E731 - it is shown if it does not come true
        await cluster.until(Deployment, "cache", ready, timeout=60)
        (pod,) = await cluster.list(Pod)
        reader, writer = await asyncio.open_connection(pod.status.pod_ip, 11211)
        writer.write(b"version\r\n")
        assert (await reader.readline()).startswith(b"VERSION ")
        writer.close()


@pytest.mark.cluster(controllers=False)
async def test_cluster_without_controllers_is_an_api_server(cluster: Cluster) -> None:
    """No controller acts on stored objects."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="cache"))
        await cluster.until(Deployment, "cache", lambda it: it.spec.replicas == 1)
        assert cluster.audit.records(user="system:kube-controller-manager") == []


async def test_object_goes_when_it_is_deleted(cluster: Cluster) -> None:
    """The operator's cleanup runs, and its finalizer is removed."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="cache"))
        await cluster.until(Memcached, "cache", lambda it: it.metadata.finalizers)
        await cluster.delete(Memcached, "cache")
        await cluster.eventually(lambda: _names(cluster), lambda names: not names)


async def test_schema_holds(cluster: Cluster) -> None:
    """The server refuses an object that the class does not allow."""
    async with cluster.run(operator):
        with pytest.raises(Invalid, match=r"spec.size: Invalid value: 65"):
            await cluster.create(Memcached(name="cache", spec=MemcachedSpec(size=65)))


async def test_each_test_has_its_own_cluster(cluster: Cluster) -> None:
    """No object of an earlier test is left."""
    with pytest.raises(NotFound):
        await cluster.get(Deployment, "cache")
    assert not await cluster.list(ConfigMap)


async def test_operator_that_cannot_run_ends_the_block(cluster: Cluster) -> None:
    """The test fails with the operator's error."""
    broken = Operator("broken")

    @broken.controller(ConfigMap, reads=())
    async def reconcile(it: ConfigMap, ctx: Context) -> None: ...

    with pytest.raises(DefinitionError, match="expected one or more operators with different names"):
        async with cluster.run(broken, broken):
            await asyncio.Event().wait()


async def test_failure_of_the_test_itself_is_not_wrapped(cluster: Cluster) -> None:
    """pytest shows an assertion in the block by its own line; an error outside of it can be expected."""
    with pytest.raises(NotFound):
        async with cluster.run(operator):
            await cluster.get(Memcached, "nobody")


async def test_eventually_says_what_was_awaited(cluster: Cluster) -> None:
    """The message has the source of the condition and the last value, or `what`."""
    await cluster.create(ConfigMap(name="a", data={"k": "1"}))
    said = await _complaint(cluster, lambda: cluster.get(ConfigMap, "a"), lambda it: it.data == {"k": "2"})
    assert re.search(r"expected .*it.data == .* within 30 s, got at last ConfigMap\(.*'k': '1'", said)
    with pytest.raises(AssertionError, match=r"expected a to be gone within 0\.1 s"):
        await cluster.eventually(lambda: _names(cluster, Memcached), bool, timeout=0.1, what="a to be gone")


async def test_eventually_shows_the_status_of_an_object_that_is_long(cluster: Cluster) -> None:
    """The message leaves out managedFields, and cuts the middle of a long object."""
    await cluster.apply(ConfigMap(name="a", data={"k": "1", "long": "x" * 9000, "z": "the end"}))
    said = await _complaint(cluster, lambda: cluster.get(ConfigMap, "a"), lambda it: not it.data)
    assert re.search(r"name='a'.* \(\d+ characters\) .*'z': 'the end'", said)
    assert "ManagedFields(" not in said


async def _complaint(cluster: Cluster, read: Callable[[], Awaitable[T]], holds: Callable[[T], Any]) -> str:
    return await _failure(cluster, lambda hasty: hasty.eventually(read, holds))


async def _failure(cluster: Cluster, wait: Callable[[Cluster], Awaitable[Any]]) -> str:
    """Returns the message of a wait that times out after its first read, however long that took: its clock is moved."""
    clock = ManualClock()
    client = Client(cluster.client._caller.transport, cluster.client.options, clock=clock)

    async def given_up() -> str:
        with pytest.raises(AssertionError) as failed:
            await wait(Cluster(client, cluster._engine))
        return str(failed.value)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        waiting = group.create_task(given_up())
        await clock.until_sleeping(2)  # the whole wait, and the one for something new
        await clock.advance(30)
    return waiting.result()


async def test_eventually_looks_again_when_something_is_written(cluster: Cluster) -> None:
    """It returns the value that holds, although the object did not exist and then had no data."""

    async def write() -> None:
        await cluster.create(ConfigMap(name="a"))
        await cluster.apply(ConfigMap(name="a", data={"k": "2"}), force=True)

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(cluster.until(ConfigMap, "a", _is_two, timeout=60))
        group.create_task(write())
    assert waiting.result().name == "a"


async def test_until_returns_the_object_for_which_the_condition_holds(cluster: Cluster) -> None:
    """An object that does not exist yet, or lacks the field, is waited for."""

    async def write() -> None:
        await cluster.create(ConfigMap(name="a"))
        await cluster.apply(ConfigMap(name="a", data={"k": "2"}), force=True)

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(cluster.until(ConfigMap, "a", lambda it: (it.data or {})["k"] == "2", timeout=60))
        group.create_task(write())
    assert waiting.result().data == {"k": "2"}


async def test_until_names_the_object_and_shows_it_as_it_was_last(cluster: Cluster) -> None:
    """A time-out says which object was awaited, in which namespace, for what, and how it looked last."""
    await cluster.create(Namespace(name="team"))
    await cluster.create(ConfigMap(name="a", namespace="team", data={"k": "1"}))
    said = await _failure(
        cluster, lambda hasty: hasty.until(ConfigMap, "a", lambda it: it.data == {"k": "2"}, namespace="team")
    )
    awaited = r"""expected ConfigMap team/a to fulfil `.*it\.data == \{"k": "2"\}.*` within 30 s"""
    assert re.search(awaited + r", got at last ConfigMap\(.*'k': '1'", said)


async def test_until_says_that_an_object_never_existed(cluster: Cluster) -> None:
    """The default namespace is named; an object of the whole cluster has none."""
    said = await _failure(cluster, lambda hasty: hasty.until(ConfigMap, "a", bool))
    assert re.fullmatch(r'expected ConfigMap default/a to fulfil .* within 30 s, got at last .*"a" not found.*', said)
    said = await _failure(cluster, lambda hasty: hasty.until(Namespace, "team", bool))
    assert said.startswith("expected Namespace team to fulfil ")


async def test_others_have_clients_too(cluster: Cluster) -> None:
    """A user without permissions is refused, and the audit log has the request."""
    with pytest.raises(Forbidden):
        await cluster.client_as("jane").get(ConfigMap, "a")
    (record,) = cluster.audit.records(user="jane")
    assert (record.verb, record.name, record.code) == ("get", "a", 403)


async def test_cluster_over_https_is_the_same(http_cluster: Cluster) -> None:
    """An operator runs on it, another user has a client, and the audit log has the requests."""
    async with http_cluster.run(operator):
        await http_cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=3)))
        await http_cluster.eventually(lambda: http_cluster.get(Deployment, "cache"), lambda it: it.spec.replicas == 3)
    with pytest.raises(Forbidden):
        await http_cluster.client_as("jane").get(ConfigMap, "a")
    assert http_cluster.audit.records(user="jane", code=403)


async def test_client_that_blocks_can_use_a_cluster_over_https(http_cluster: Cluster) -> None:
    """The server runs in its own thread, not in the test's loop."""
    access = http_cluster.access
    assert access is not None
    request = urllib.request.Request(
        f"{access.url}/api/v1/namespaces/default", headers={"Authorization": f"Bearer {access.token}"}
    )
    context = ssl.create_default_context(cadata=access.authority.decode())
    with urllib.request.urlopen(request, context=context) as answer:  # noqa: ASYNC210 - that is the point
        assert answer.status == 200


def test_plugin_imports_nothing_until_it_is_asked(pytester: pytest.Pytester) -> None:
    """Tests that use no cluster do not pay for its imports."""
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            assert "navarch.cluster" not in sys.modules
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_failure_is_shown_by_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    """A failed assertion and a time-out are shown by the test's line, not by lines of navarch."""
    pytester.makepyfile(
        """
        from navarch import Operator

        async def test_assertion(cluster):
            async with cluster.run(Operator("idle")):
                assert 1 + 1 == 3

        async def test_waiting(cluster):
            async def nothing(): ...

            await cluster.eventually(nothing, bool, timeout=0.1)
        """
    )
    result = pytester.runpytest_inprocess(*PLUGINS, "-o", "asyncio_mode=auto")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["> *assert 1 + 1 == 3", "> *await cluster.eventually(nothing, bool, timeout=0.1)"])
    result.stdout.no_fnmatch_line("*navarch/testing/*")
    result.stdout.no_fnmatch_line("*Exception Group*")


def test_plugin_works_in_strict_mode(pytester: pytest.Pytester) -> None:
    """The fixtures work in pytest-asyncio's default mode, in which tests are marked."""
    pytester.makepyfile(
        """
        import pytest
        from navarch.k8s.core.v1 import Namespace

        @pytest.mark.asyncio
        async def test_it(cluster):
            assert (await cluster.get(Namespace, "default")).name == "default"
        """
    )
    pytester.runpytest_inprocess(*PLUGINS, "-o", "asyncio_mode=strict").assert_outcomes(passed=1)


def _is_two(it: ConfigMap) -> bool:
    data: Any = it.data
    return bool(data["k"] == "2")


async def _names(cluster: Cluster, kind: Any = Memcached) -> list[str]:
    return [each.name for each in await cluster.list(kind)]


class IssuerSpec(Model):
    """What another project's CRD would have."""

    server: str | None = None


class Issuer(Object, group="issuers.example.com", version="v1"):
    """A kind of another project, as `navarch generate models` writes it."""

    spec: IssuerSpec = field(default_factory=IssuerSpec)


async def test_kinds_of_other_projects_are_served(cluster: Cluster) -> None:
    """An operator of a project that reconciles a kind of another one starts in a test, and sees its objects."""
    watching, seen = Operator("watching", crds="verify"), asyncio.Event()

    @watching.controller(Issuer)
    async def reconcile(issuer: Issuer, ctx: Context) -> None:
        seen.set()

    async with cluster.run(watching):
        await cluster.create(Issuer(name="letters"))
        await asyncio.wait_for(seen.wait(), 10)


async def test_run_installs_the_crds_that_an_operator_verifies(cluster: Cluster) -> None:
    """An operator with `crds="verify"` finds its CRDs in a test, as its manifests would bring them."""
    verifying = Operator("verifying", crds="verify")

    @verifying.controller(Memcached)
    async def reconcile(memcached: Memcached, ctx: Context) -> None:
        memcached.status.nodes = ["seen"]

    async with cluster.run(verifying):
        await cluster.apply(Memcached(name="cache"))
        await cluster.until(Memcached, "cache", lambda it: it.status.nodes == ["seen"])


def test_operator_is_that_of_the_project(pytester: pytest.Pytester) -> None:
    """The fixture `operator` has what the modules of the project declare."""
    pytester.makefile("", PROJECT=PROJECT)
    pytester.makeini("[pytest]\npythonpath = src\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    source = pytester.mkdir("src") / "fixture_operator"
    (source / "controllers").mkdir(parents=True)
    (source / "__init__.py").write_text("from navarch import Operator\n\noperator = Operator('fixture-operator')\n")
    (source / "controllers" / "__init__.py").touch()
    (source / "controllers" / "pods.py").write_text(
        "from fixture_operator import operator\nfrom navarch.k8s.core.v1 import Pod\n\n\n"
        "@operator.controller(Pod)\nasync def reconcile(pod, ctx): ...\n"
    )
    pytester.makepyfile("def test_it(operator):\n    assert [each.name for each in operator.controllers] == ['pod']\n")
    pytester.runpytest().assert_outcomes(passed=1)


PROJECT = """
domain: example.com
layout: [python.navarch.dev/v1]
projectName: fixture-operator
version: "3"
"""
