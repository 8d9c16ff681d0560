"""docs/getting-started.md and docs/testing.md: what they have the reader write works as it stands there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml

from docs.pages import blocks, module_from
from navarch.api import from_builtins
from navarch.testing import Cluster

pytest_plugins = ["pytester"]

PAGE = "getting-started.md"
MEMCACHED = Path(__file__).parents[2] / "examples" / "memcached" / "src"


def the_operator() -> str:
    """The blocks that the reader puts into one file."""
    return "\n\n".join(blocks(PAGE, "python")[:3])


@pytest.fixture
def website_operator(tmp_path: Path) -> Iterator[ModuleType]:
    """The reader's file, which the other blocks import."""
    file = tmp_path / "website_operator.py"
    file.write_text(the_operator())
    yield module_from(file)
    del sys.modules["website_operator"]


@pytest.mark.cluster(nodes=1)
async def test_website_of_the_page_answers(cluster: Cluster, website_operator: ModuleType) -> None:
    """At the address in its status, with the page that was asked for; and it goes when it is deleted."""
    manifest = yaml.safe_load(blocks(PAGE, "yaml")[0])
    kind = website_operator.Website
    async with cluster.run(website_operator.operator):
        await cluster.apply(from_builtins(kind, manifest))
        home = await cluster.until(kind, "home", lambda it: it.status.is_true("Ready"))
        page = await cluster.eventually(lambda: asyncio.to_thread(_got, home.status.url), lambda it: it is not None)
        assert page == manifest["spec"]["html"]
        await cluster.delete(kind, "home")
        await cluster.eventually(lambda: cluster.list(kind), lambda left: not left)


def test_test_of_the_page_passes(pytester: pytest.Pytester) -> None:
    """With the files that the page names, and no others."""
    pytester.makepyfile(website_operator=the_operator(), test_website=blocks(PAGE, "python")[3])
    pytester.makeini(*blocks(PAGE, "ini"))
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_manifests_of_the_page_are_whole(website_operator: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The CRD, and what the operator may do in the cluster and in its own namespace, with the bindings."""
    exec(blocks(PAGE, "python")[5], {})
    kinds = [each["kind"] for each in yaml.safe_load_all(capsys.readouterr().out)]
    assert kinds == ["CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]


@pytest.mark.long
def test_tests_of_the_page_on_testing_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, as one file, with the settings that the page gives."""
    monkeypatch.setenv("PYTHONPATH", str(MEMCACHED))
    pytester.makepyfile(test_page="\n".join(blocks("testing.md", "python")))
    pytester.makeini(*blocks("testing.md", "ini"))
    pytester.runpytest_subprocess().assert_outcomes(passed=10)


def _got(url: str) -> str | None:
    """The page, None as long as the service leads nowhere: as in Kubernetes, it hears of ready pods by itself."""
    try:
        with urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())
    except (ConnectionError, URLError):
        return None
