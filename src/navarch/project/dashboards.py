"""`grafana`: a dashboard over the metrics of an operator, and its alerts as Prometheus reads them without its operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from navarch.project.manifests import DeploymentModel
from navarch.project.manifests.alerts import alert_rules
from navarch.project.yaml_text import GENERATED, dump

__all__ = ["Panel", "dashboard_files", "panels"]

_JOB: Final = 'job="$job"'
_RANGE: Final = "[$__rate_interval]"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph: its expressions by their legends. A new `row` begins with the first panel that has it."""

    row: str
    title: str
    unit: str
    expressions: dict[str, str]


def dashboard_files(model: DeploymentModel) -> dict[str, str]:
    """Returns the files of `grafana` by their paths."""
    dashboard = msgspec.json.format(msgspec.json.encode(_dashboard(model)), indent=2).decode()
    return {
        f"grafana/{model.name}.json": dashboard + "\n",
        "grafana/alerts.yaml": GENERATED + dump(alert_rules(model)),
    }


def panels(model: DeploymentModel) -> Iterator[Panel]:
    """Yields the graphs; those of webhooks only for an operator that has some."""
    yield from _of_reconciles()
    yield from _of_queues()
    yield from _of_the_process()
    if model.has_webhooks:
        yield from _of_webhooks(model)


def _rate(metric: str, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{_JOB}{selector}}}{_RANGE}))"


def _quantile(quantile: float, metric: str, by: str) -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({quantile:g}, {_rate(f'{metric}_bucket', labels)})"


def _gauge(metric: str, by: str, function: str = "sum") -> str:
    return f"{function} by ({by}) ({metric}{{{_JOB}}})"


def _of_reconciles() -> Iterator[Panel]:
    row, runtime = "Reconciles", "controller_runtime"
    yield Panel(
        row,
        "Reconciles by result",
        "ops",
        {"{{controller}} {{result}}": _rate(f"{runtime}_reconcile_total", "controller, result")},
    )
    errors = {
        "errors": f"{runtime}_reconcile_errors_total",
        "permanent": f"{runtime}_terminal_reconcile_errors_total",
        "faults in the code": f"{runtime}_reconcile_panics_total",
        "time limit": f"{runtime}_reconcile_timeouts_total",
        "triggered by own writes": "navarch_self_triggered_reconciles_total",
    }
    yield Panel(
        row,
        "Errors",
        "ops",
        {f"{{{{controller}}}} {legend}": _rate(metric, "controller") for legend, metric in errors.items()},
    )
    yield Panel(
        row,
        "Duration of reconciles",
        "s",
        {
            f"{{{{controller}}}} p{quantile * 100:g}": _quantile(
                quantile, f"{runtime}_reconcile_time_seconds", "controller"
            )
            for quantile in (0.5, 0.9, 0.99)
        },
    )
    yield Panel(
        row,
        "Busy workers",
        "percentunit",
        {
            "{{controller}}": f"{_gauge(f'{runtime}_active_workers', 'controller')} / "
            f"{_gauge(f'{runtime}_max_concurrent_reconciles', 'controller')}"
        },
    )


def _of_queues() -> Iterator[Panel]:
    row = "Work queues"
    yield Panel(row, "Depth", "short", {"{{name}}": _gauge("workqueue_depth", "name")})
    yield Panel(
        row,
        "Additions and retries",
        "ops",
        {
            "{{name}} added": _rate("workqueue_adds_total", "name"),
            "{{name}} retried": _rate("workqueue_retries_total", "name"),
        },
    )
    yield Panel(
        row,
        "Waiting and working, p99",
        "s",
        {
            "{{name}} waits": _quantile(0.99, "workqueue_queue_duration_seconds", "name"),
            "{{name}} works": _quantile(0.99, "workqueue_work_duration_seconds", "name"),
        },
    )
    yield Panel(
        row,
        "Unfinished work",
        "s",
        {
            "{{name}} longest": _gauge("workqueue_longest_running_processor_seconds", "name", "max"),
            "{{name}} all": _gauge("workqueue_unfinished_work_seconds", "name"),
        },
    )


def _of_the_process() -> Iterator[Panel]:
    row = "Process"
    yield Panel(row, "Leader", "short", {"{{instance}}": _gauge("leader_election_master_status", "instance", "max")})
    yield Panel(
        row,
        "Requests to the API server",
        "reqps",
        {"{{method}} {{code}}": _rate("rest_client_requests_total", "method, code")},
    )
    yield Panel(
        row,
        "Lag of the event loop",
        "s",
        {f"p{quantile * 100:g}": _quantile(quantile, "navarch_event_loop_lag_seconds", "") for quantile in (0.5, 0.99)},
    )
    yield Panel(row, "Age of watches", "s", {"{{kind}}": _gauge("navarch_watch_staleness_seconds", "kind", "max")})
    yield Panel(row, "States of watches", "short", {"{{state}}": _gauge("navarch_watch_state", "state")})
    yield Panel(row, "Cached objects", "short", {"{{kind}}": _gauge("navarch_cache_objects", "kind", "max")})
    yield Panel(row, "Size of the cache", "bytes", {"{{kind}}": _gauge("navarch_cache_bytes", "kind", "max")})


def _of_webhooks(model: DeploymentModel) -> Iterator[Panel]:
    row, runtime = "Webhooks", "controller_runtime_webhook"
    yield Panel(row, "Requests", "reqps", {"{{webhook}} {{code}}": _rate(f"{runtime}_requests_total", "webhook, code")})
    yield Panel(row, "Latency, p99", "s", {"{{webhook}}": _quantile(0.99, f"{runtime}_latency_seconds", "webhook")})
    yield Panel(row, "In flight", "short", {"{{webhook}}": _gauge(f"{runtime}_requests_in_flight", "webhook")})
    if model.operator.admission_webhooks:
        yield Panel(
            row,
            "Verdicts",
            "ops",
            {"{{webhook}} {{verdict}}": _rate("navarch_webhook_verdicts_total", "webhook, verdict")},
        )
    if not model.uses_cert_manager:
        expiry = f"min by (certificate) (navarch_webhook_certificate_expiry_timestamp_seconds{{{_JOB}}} - time())"
        yield Panel(row, "Certificates expire in", "s", {"{{certificate}}": expiry})


def _dashboard(model: DeploymentModel) -> dict[str, Any]:
    return {
        "title": f"Operator {model.name}",
        "uid": model.name[:40],
        "tags": ["navarch", "operator"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables(model)},
        "panels": list(_placed(panels(model))),
    }


def _variables(model: DeploymentModel) -> list[dict[str, Any]]:
    query = "label_values(controller_runtime_max_concurrent_reconciles, job)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": "jobs"},
            "definition": query,
            "refresh": 1,
            "current": {"text": model.metrics_service, "value": model.metrics_service},
        },
    ]


def _placed(found: Iterator[Panel]) -> Iterator[dict[str, Any]]:
    """Yields Grafana's panels, three in a line, below the titles of their rows."""
    row, column, line, number = "", 0, 0, 0
    for panel in found:
        if panel.row != row:
            line += _HEIGHT if column else 0
            row, column, number = panel.row, 0, number + 1
            place = {"h": 1, "w": _WIDTH * _COLUMNS, "x": 0, "y": line}
            yield {"id": number, "type": "row", "title": row, "collapsed": False, "gridPos": place, "panels": []}
            line += 1
        elif column == _COLUMNS:
            column, line = 0, line + _HEIGHT
        number += 1
        place = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": line}
        yield {
            "id": number,
            "type": "timeseries",
            "title": panel.title,
            "datasource": _SOURCE,
            "gridPos": place,
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
            "targets": [
                {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
                for index, (legend, expression) in enumerate(panel.expressions.items())
            ],
        }
        column += 1
