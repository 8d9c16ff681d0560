"""What docs/running.md shows is so."""

from __future__ import annotations

from types import ModuleType

import pytest
import yaml

from docs.pages import blocks, module_of
from navarch import ElectionOptions, Operator
from navarch.operator.roles import Permission, report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return module_of("running.md", tmp_path_factory.mktemp("running"))


def test_the_report_is_the_one_that_is_shown() -> None:
    """To the letter."""
    missing = [
        Permission("create", "apps", "deployments", namespace="shop"),
        Permission("patch", "apps", "deployments", namespace="shop"),
        Permission("update", "cache.example.com", "memcacheds", "status", "shop"),
    ]
    who = "system:serviceaccount:shop:memcached-operator"
    assert blocks("running.md", "text") == [report(who, missing, "memcached-operator")]


def test_options_are_the_defaults_where_the_page_says_so(page: ModuleType) -> None:
    """Of the election, the CRDs, the permissions and the drain."""
    shown, default = page.operator, Operator("memcached-operator")
    assert default.election == shown.election == ElectionOptions(name="memcached-operator")
    assert default.election.renew_deadline == 10
    assert (default.crds, default.check_permissions, default.drain_seconds) == ("install", True, 30)
    assert default.endpoints is None


def test_the_deployment_probes_where_the_operator_listens(page: ModuleType) -> None:
    """At every address of the pod, and with more time to stop than the drain takes."""
    (manifest,) = map(yaml.safe_load, blocks("running.md", "yaml"))
    spec = manifest["spec"]["template"]["spec"]
    address = page.operator.endpoints.health_address
    for probe in ("livenessProbe", "readinessProbe"):
        assert spec["containers"][0][probe]["httpGet"]["port"] == address.port
    assert not address.is_loopback
    assert spec["terminationGracePeriodSeconds"] > page.operator.drain_seconds + page.operator.election.stop_seconds
