"""The program of a project: its flags, its environment, and the one line that tells why it cannot start."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from navarch import ElectionOptions, Endpoints, Operator, WebhookServer
from navarch.errors import ConfigError
from navarch.operator import main, needed_by
from navarch.operator.main import ProgramOptions, configure, parse_options
from served_endpoints import get, served

Package = Callable[..., str]


def configured(*argv: str, operator: Operator | None = None, watch: str | None = None) -> Operator:
    """The operator as a process with these flags runs it."""
    found = operator or Operator("tried")
    configure(found, parse_options(argv, {} if watch is None else {"WATCH_NAMESPACE": watch}))
    return found


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Writes the package `tried_operator` with this text of a controller, and returns the path of that file."""

    def write(text: str) -> str:
        folder = tmp_path / "tried_operator" / "controllers"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").write_text('from navarch import Operator\noperator = Operator("tried")\n')
        (folder / "__init__.py").touch()
        (folder / "cache.py").write_text(text)
        return str(folder / "cache.py")

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    for name in [name for name in sys.modules if name.startswith("tried_operator")]:
        del sys.modules[name]


def test_program_without_flags_neither_elects_nor_shows_metrics() -> None:
    """Health is on loopback, as kubebuilder's program has it."""
    operator = configured(operator=Operator("tried", endpoints=Endpoints(metrics="127.0.0.1:1")))
    assert operator.election is None
    assert operator.endpoints == Endpoints(health="127.0.0.1:8081", metrics=None)
    assert operator.namespaces.all


def test_flags_of_the_deployment_elect_and_demand_tokens() -> None:
    """What the code declares beyond the flags stays."""
    declared = Operator(
        "tried",
        election=ElectionOptions(name="other"),
        endpoints=Endpoints(registry=(registry := CollectorRegistry())),
    )
    operator = configured(
        "--leader-elect",
        "--health-probe-bind-address=10.0.0.7:8081",
        "--metrics-bind-address=10.0.0.7:8443",
        operator=declared,
    )
    assert operator.election == ElectionOptions(name="other")
    assert operator.endpoints == Endpoints(
        health="10.0.0.7:8081", metrics="10.0.0.7:8443", self_signed=True, token_review=True, registry=registry
    )


def test_address_of_an_ipv6_pod_needs_no_brackets() -> None:
    """The Deployment has $(POD_IP):8081 for pods of either family."""
    endpoints = configured("--health-probe-bind-address=fd00::7:8081").endpoints
    assert endpoints is not None
    assert str(endpoints.health_address) == "[fd00::7]:8081"


def test_metrics_without_tokens_stay_on_loopback() -> None:
    """The error says both remedies."""
    endpoints = configured("--metrics-bind-address=127.0.0.1:8080", "--no-metrics-secure").endpoints
    assert endpoints == Endpoints(metrics="127.0.0.1:8080")
    with pytest.raises(ConfigError, match=r"leave out --no-metrics-secure, or listen at 127\.0\.0\.1:8080"):
        configured("--metrics-bind-address=:8080", "--no-metrics-secure")


@pytest.mark.parametrize(
    ("watch", "patterns"), [(None, ("declared",)), ("", ()), ("team-a", ("team-a",)), ("a, b,", ("a", "b"))]
)
def test_watched_namespaces_come_from_the_environment(watch: str | None, patterns: tuple[str, ...]) -> None:
    """Empty means all; without the variable those that the code declares."""
    operator = configured(operator=Operator("tried", namespaces=("declared",)), watch=watch)
    assert operator.namespaces.patterns == patterns


def test_certificate_of_others_leaves_the_registration_to_manifests() -> None:
    """Which is verified then."""
    operator = configured(
        "--webhook-cert-path=/certs", "--webhook-service=front", "--webhook-bind-address=10.0.0.7:9443"
    )
    assert operator.webhook_server == WebhookServer(
        listen="10.0.0.7:9443", service="front", certificate=Path("/certs/tls.crt"), key=Path("/certs/tls.key")
    )
    assert operator.webhooks == "verify"


def test_reviews_of_tokens_are_needed_where_metrics_demand_them() -> None:
    """And nowhere else."""
    reviews = {"create tokenreviews.authentication.k8s.io in the whole cluster"}
    reviews |= {"create subjectaccessreviews.authorization.k8s.io in the whole cluster"}
    secure = needed_by(configured("--metrics-bind-address=:8443"), election_namespace=None)
    assert reviews <= set(map(str, secure))
    assert not reviews & set(map(str, needed_by(configured(), election_namespace=None)))


async def test_self_signed_metrics_are_encrypted() -> None:
    """A client that does not check the server is answered."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with served(Endpoints(health=None, metrics="127.0.0.1:0", self_signed=True)) as at:
        assert (await get(at.metrics, "/metrics", trusted=trusting))[0] == 200


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--leader-elected"], "unrecognized arguments: --leader-elected; python -m tried_operator --help"),
        (["--log-level=loud"], "invalid choice: 'loud'"),
        (["--metrics-bind-address"], "expected one argument"),
    ],
)
def test_wrong_flag_is_told_in_one_line(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the exit code is 2."""
    with pytest.raises(SystemExit) as ended:
        main("tried_operator", argv)
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1)
    assert message in told


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("import json\nthere = json.loads('')\n", 2, "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("def f(:\n", 1, "expected Python, got a SyntaxError: invalid syntax"),
        ("import missing_library\n", 1, "ModuleNotFoundError: No module named 'missing_library'"),
        (
            "from tried_operator import operator\n\n@operator.controller\ndef f(): ...\n",
            3,
            "expected a class to reconcile, got the function f",
        ),
    ],
)
def test_code_that_fails_is_told_with_its_line(
    text: str, line: int, message: str, package: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's own line, also where the exception comes from further below."""
    file = package(text)
    with pytest.raises(SystemExit) as ended:
        main("tried_operator", [])
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (1, 1)
    assert told.startswith(f"error: {file}:{line}: {message}")


def test_package_that_is_not_installed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that installs it."""
    with pytest.raises(SystemExit):
        main("no_such_operator", [])
    assert "no_such_operator: expected a package of that name, got none; install the project: pip install -e ." in (
        capsys.readouterr().err
    )


def test_options_are_the_defaults_of_the_flags() -> None:
    """So that code and command line agree."""
    assert parse_options([], {}) == ProgramOptions()
