"""Mistakes that an editor underlines: each line below must be an error, of the code that stands beside it."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]

MISTAKES = """
from navarch.api import Dynamic, Kind, Resource, Spec, Status
from navarch import Context, Operator, Result
from navarch.client import ALL, Client, MergePatch, MetadataOnly
from navarch.k8s.core.v1 import Pod


class MemcachedSpec(Spec):
    size: int = 1


class NeedySpec(Spec):
    image: str


class MemcachedStatus(Status):
    nodes: list[str] = []


class Memcached(Resource[MemcachedSpec, MemcachedStatus], group="example.com", version="v1"): ...


class Needy(Resource[NeedySpec, None], group="example.com", version="v1"): ...


def constructors(memcached: Memcached) -> None:
    MemcachedSpec(sise=3)  # call-arg
    MemcachedSpec(size="three")  # arg-type
    MemcachedSpec(3)  # call-arg
    NeedySpec()  # call-arg
    Memcached("cache")  # call-arg
    Memcached(name=7)  # arg-type
    Memcached(name="a", spec={"size": 3})  # arg-type
    Memcached(name="a", spec=NeedySpec(image="i"))  # arg-type
    Memcached(name="a", labels={"a": 1})  # dict-item
    memcached.spec.sise  # attr-defined
    memcached.status.nodes = "a"  # assignment
    memcached.kind = "Other"  # misc
    Needy(name="a", spec=NeedySpec(image="i")).status.nodes  # attr-defined


async def verbs(client: Client, memcached: Memcached) -> None:
    await client.get("pods", "a")  # arg-type
    await client.get(MemcachedSpec, "a")  # arg-type
    await client.get(Memcached)  # call-arg
    await client.get(Memcached, 7)  # arg-type
    await client.get(Memcached, None)  # arg-type
    await client.delete(Memcached, None)  # arg-type
    await client.get(Memcached, "a", "shop")  # call-arg
    (await client.get(Pod, "a")).spec.sise  # attr-defined
    (await client.get(MetadataOnly(Pod), "a")).spec  # attr-defined
    await client.create({"kind": "Pod"})  # type-var
    await client.create(Memcached)  # type-var
    await client.patch(Memcached, "a", {"spec": {}})  # arg-type
    await client.delete(Memcached, "a", propagation="Backgrond")  # arg-type
    await client.apply(memcached, forced=True)  # call-arg
    client.using(field_validation="strict")  # arg-type
    client.get(Pod, "a")  # unused-coroutine
    client.list(Pod)  # unused-awaitable
    for pod in client.list(Pod):  # attr-defined
        ...
    found: Pod = await client.get(Kind("", "v1", "Pod", plural="pods"), "a")  # arg-type


async def of_pods(pod: Pod, ctx: Context) -> None: ...


async def returns_text(memcached: Memcached, ctx: Context) -> str:
    return memcached.name


async def right(memcached: Memcached, ctx: Context) -> Result | None: ...


def controllers(operator: Operator) -> None:
    operator.controller(Memcached)(of_pods)  # arg-type
    operator.controller(Memcached)(returns_text)  # type-var
    operator.controller(Memcached, owns=Pod)  # arg-type
    operator.controller(Memcached, watches={Pod: "a"})  # dict-item
    operator.controller(MemcachedSpec)  # type-var
    operator.controller(Memcached)(right).cleanup(of_pods)  # arg-type
    operator.controller(Memcached)(right).trigger("a", "shop")  # call-arg
"""

_REPORTED = re.compile(r"^[^:]+:(\d+): error: .*\[([a-z-]+)\]$", re.MULTILINE)


def expected() -> list[tuple[int, str]]:
    lines = enumerate(MISTAKES.splitlines(), start=1)
    return [(number, line.rpartition("# ")[2]) for number, line in lines if "  # " in line]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One run of mypy with the project's own settings."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "mistakes.py").write_text(MISTAKES)
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / "cache")]
    shown = ["--no-error-summary", "--hide-error-context", "--no-pretty"]
    output, faults, _ = api.run([*settings, *shown, str(folder / "mistakes.py")])
    assert not faults, faults
    return output


@pytest.mark.long
def test_every_mistake_is_found_and_nothing_else(report: str) -> None:
    """Line by line, each with its own code."""
    found = [(int(line), code) for line, code in _REPORTED.findall(report)]
    assert found == expected(), report
