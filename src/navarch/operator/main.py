"""`main`: the program of an operator project: its flags, its environment, its operator.

The flags have the names that Deployments of kubebuilder's projects use. `configure` is a function of its own, because the
manifests of a project follow from the operator as its Deployment runs it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from navarch.cache import Namespaces
from navarch.controller.election import ElectionOptions
from navarch.errors import ConfigError, NavarchError
from navarch.observe import logs
from navarch.operator.declarations import DeclaredOperator
from navarch.operator.endpoints import Address, Endpoints
from navarch.operator.loader import load_operator, load_trouble
from navarch.operator.program import run
from navarch.operator.webhook_server import WebhookServer

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["WATCH_NAMESPACE", "ProgramOptions", "configure", "main", "parse_options"]

WATCH_NAMESPACE: Final = "WATCH_NAMESPACE"
"""The variable with the namespaces of the operator, separated by commas; empty for all."""
_OFF: Final = "0"
_LEVELS: Final = ("debug", "info", "warning", "error")
_CERTIFICATE, _KEY = "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """How one process runs the operator: what the flags and the environment say."""

    leader_elect: bool = False
    health: str | None = "127.0.0.1:8081"
    metrics: str | None = None
    metrics_secure: bool = True
    metrics_cert_path: Path | None = None
    webhook: WebhookServer = field(default_factory=WebhookServer)
    log_level: str = "info"
    namespaces: tuple[str, ...] | None = None
    """None leaves them as the operator declares them."""


def main(package: str, argv: Sequence[str] | None = None) -> None:
    """Runs the operator of the package until SIGTERM or SIGINT: the whole of its `__main__.py`.

    `argv` are the flags, by default those of this process. Exits with 2 for a wrong flag, and with 1 if the operator cannot be
    loaded or cannot run; both are one line on standard error, with the place in the user's code.
    """
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv, os.environ, package)
    except ConfigError as error:
        _end(str(error), 2)
    try:
        operator = load_operator(package)
    except Exception as error:  # noqa: BLE001 - any code may run when a module is imported
        _end(load_trouble(error, package), 1)
    try:
        configure(operator, options)
        if not logging.getLogger().handlers:  # the package may have set it up in its own way
            logs.setup(level=options.log_level)
        run(operator)
    except NavarchError as error:
        _end(str(error), 1)


def _end(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)  # noqa: T201 - for people; the log may be JSON
    raise SystemExit(code)


def parse_options(argv: Sequence[str], environment: Mapping[str, str], package: str = "operator") -> ProgramOptions:
    """Reads flags and environment. Raises `ConfigError` for a flag that is unknown, or that has a wrong value."""
    found = _parser(package).parse_args(list(argv))
    watched = environment.get(WATCH_NAMESPACE)
    return ProgramOptions(
        leader_elect=found.leader_elect,
        health=_address(found.health_probe_bind_address),
        metrics=_address(found.metrics_bind_address),
        metrics_secure=found.metrics_secure,
        metrics_cert_path=found.metrics_cert_path,
        webhook=_webhook_server(found),
        log_level=found.log_level,
        namespaces=None if watched is None else tuple(filter(None, map(str.strip, watched.split(",")))),
    )


def _parser(package: str) -> ArgumentParser:
    from argparse import ArgumentParser, BooleanOptionalAction  # noqa: PLC0415 - operators without a project need it not

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            """Raises instead of printing the usage: the one line that matters is easier to find."""
            raise ConfigError(f"{message}; python -m {self.prog} --help lists all flags")

    parser = Parser(prog=package, allow_abbrev=False, description=f"Runs the operator of {package}.")
    flag = parser.add_argument
    flag("--leader-elect", action=BooleanOptionalAction, default=False, help="several replicas, one works")
    flag(
        "--health-probe-bind-address",
        default="127.0.0.1:8081",
        metavar="ADDRESS",
        help="of /healthz and /readyz; 0: off",
    )
    flag("--metrics-bind-address", default=_OFF, metavar="ADDRESS", help="of /metrics; 0, the default: off")
    flag(
        "--metrics-secure",
        action=BooleanOptionalAction,
        default=True,
        help="HTTPS for those with a token that may get /metrics; without, plain HTTP on a loopback address",
    )
    flag(
        "--metrics-cert-path",
        type=Path,
        metavar="FOLDER",
        help=f"with {_CERTIFICATE} and {_KEY}; by default self-signed",
    )
    flag("--webhook-cert-path", type=Path, metavar="FOLDER", help=f"with {_CERTIFICATE} and {_KEY} that others renew")
    flag("--webhook-bind-address", default="", metavar="ADDRESS", help="of the webhooks; in a pod :9443")
    flag("--webhook-service", default="", metavar="NAME", help="of the Service in front of the webhooks")
    flag("--log-level", choices=_LEVELS, default="info")
    return parser


def _webhook_server(found: Namespace) -> WebhookServer:
    folder: Path | None = found.webhook_cert_path
    return WebhookServer(
        listen=_address(found.webhook_bind_address) or "",
        service=found.webhook_service,
        certificate=folder and folder / _CERTIFICATE,
        key=folder and folder / _KEY,
    )


def _address(text: str) -> str | None:
    """Returns the address to listen at; None for none. `$(POD_IP):8081` has no brackets around an IPv6 address."""
    if text in {"", _OFF}:
        return None
    host, _, port = text.rpartition(":")
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else text


def configure(operator: DeclaredOperator, options: ProgramOptions) -> None:
    """Sets on the operator what the options decide: election, endpoints, namespaces and the webhooks' server.

    The registry of declared endpoints, the details of a declared election and of a declared webhook server stay. Webhooks with
    a certificate from files are registered by manifests: the operator then verifies them. Raises `ConfigError`.
    """
    operator.endpoints = _endpoints(operator.endpoints, options)
    if not options.leader_elect:
        operator.election = None
    elif operator.election is None:
        operator.election = ElectionOptions(name=operator.name)
    if options.namespaces is not None:
        operator.namespaces = Namespaces(*options.namespaces)
    declared, given = operator.webhook_server, options.webhook
    if isinstance(declared, WebhookServer):
        operator.webhook_server = replace(
            declared,
            listen=given.listen or declared.listen,
            service=declared.service or ("" if declared.url else given.service),
            certificate=given.certificate or declared.certificate,
            key=given.key or declared.key,
        )
    if given.certificate is not None and operator.webhooks == "install":
        operator.webhooks = "verify"


def _endpoints(declared: Endpoints | None, options: ProgramOptions) -> Endpoints | None:
    folder = options.metrics_cert_path
    if options.health is None and options.metrics is None:
        return None
    is_secure = options.metrics_secure and options.metrics is not None
    if options.metrics is not None and not is_secure:
        _refuse_open_metrics(options.metrics)
    return Endpoints(
        health=options.health,
        metrics=options.metrics,
        certificate=folder / _CERTIFICATE if folder and is_secure else None,
        key=folder / _KEY if folder and is_secure else None,
        self_signed=is_secure and folder is None,
        token_review=is_secure,
        registry=declared.registry if declared is not None else None,
    )


def _refuse_open_metrics(address: str) -> None:
    found = Address.parse(address)
    if not found.is_loopback:
        raise ConfigError(
            f"expected a loopback address for metrics without tokens, got --metrics-bind-address={address}; leave out "
            f"--no-metrics-secure, or listen at 127.0.0.1:{found.port}"
        )
