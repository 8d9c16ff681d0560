"""The operator as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from etcd_operator.environment import flags_of, operator_of, watched_namespaces
from navarch.errors import ConfigError
from navarch.operator import Operator
from navarch.operator.main import configure, parse_options

SOURCE = Path(__file__).parents[1] / "src"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ETCD_OPERATOR_HEALTH", "nowhere"),
        pytest.param("ETCD_OPERATOR_METRICS", "nowhere", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_NAMESPACES", "team-a,nowhere*", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_NAMESPACES", "nowhere,", marks=pytest.mark.long),
        pytest.param("WATCH_NAMESPACE", "team-a,nowhere*", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_MAX_SNAPSHOT", "nowhere", marks=pytest.mark.long),
    ],
)
def test_a_value_that_is_none_is_refused_in_a_sentence(variable: str, value: str) -> None:
    """With an example, and without a traceback."""
    run = subprocess.run(
        [sys.executable, "-m", "etcd_operator"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), variable: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert "such as" in run.stderr
    assert "nowhere" in run.stderr
    assert "Traceback" not in run.stderr


def configured(environment: dict[str, str], *given: str) -> Operator:
    """The operator as the program runs it."""
    operator = operator_of(environment)
    configure(operator, parse_options(flags_of(environment, given), environment))
    return operator


def test_variables_and_defaults_stand_for_flags() -> None:
    """Replicas elect a leader, probes and metrics are local, and metrics at any other address demand a token."""
    plain = configured({})
    assert plain.election is not None
    assert plain.endpoints is not None
    assert (plain.endpoints.health, plain.endpoints.metrics) == ("127.0.0.1:8081", "127.0.0.1:8080")
    assert not plain.endpoints.token_review
    assert plain.endpoints.registry is not None
    open_metrics = configured({"ETCD_OPERATOR_HEALTH": ":1", "ETCD_OPERATOR_METRICS": ":2"}).endpoints
    assert open_metrics is not None
    assert (open_metrics.health, open_metrics.metrics, open_metrics.token_review) == (":1", ":2", True)


def test_flags_take_precedence() -> None:
    """Those of the Deployment do, whatever the variables say."""
    flags = ("--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443")
    endpoints = configured({"ETCD_OPERATOR_HEALTH": ":1"}, *flags).endpoints
    assert endpoints is not None
    assert (endpoints.health, endpoints.metrics, endpoints.token_review) == (":8081", ":8443", True)
    assert configured({}, "--no-leader-elect").election is None


@pytest.mark.parametrize("variable", ["ETCD_OPERATOR_NAMESPACES", "WATCH_NAMESPACE"])
def test_namespaces_come_from_either_variable(variable: str) -> None:
    """With namespaces the operator does not install its CRDs."""
    assert watched_namespaces({variable: "team-a, team-b"}) == ("team-a", "team-b")
    operator = configured({variable: "team-a,team-b"})
    assert operator.namespaces.names == frozenset({"team-a", "team-b"})
    assert operator.crds == "verify"
    assert configured({}).namespaces.all
    assert configured({}).crds == "install"


@pytest.mark.parametrize("watched", ["", "team-b"])
def test_namespaces_that_contradict_each_other_are_refused(watched: str) -> None:
    """The operator would else watch namespaces that one of the variables does not name."""
    with pytest.raises(ConfigError, match="expected the same names"):
        operator_of({"ETCD_OPERATOR_NAMESPACES": "team-a", "WATCH_NAMESPACE": watched})
