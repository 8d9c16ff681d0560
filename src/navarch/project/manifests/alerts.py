"""The alerts of an operator: expressions over the metrics of docs/observing.md, with the values at which they fire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from navarch.project.manifests.model import DeploymentModel, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Fires when `expression` has been above or below `threshold` for `minutes`."""

    name: str
    expression: str
    comparison: Literal[">", "<"]
    threshold: float
    minutes: int
    severity: Literal["warning", "critical"] = "warning"
    summary: str
    remedy: str

    def rule(self, prefix: str) -> Json:
        """Returns the rule as Prometheus reads it."""
        return {
            "alert": f"{prefix}{self.name}",
            "expr": f"{self.expression} {self.comparison} {self.threshold:g}",
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.remedy},
        }


def alert_rules(model: DeploymentModel) -> Json:
    """Returns the group of rules of the operator, in Prometheus' own format."""
    prefix = "".join(part.capitalize() for part in model.name.split("-"))
    return {"groups": [{"name": model.name, "rules": [alert.rule(prefix) for alert in alerts(model)]}]}


def alerts(model: DeploymentModel) -> Iterator[Alert]:
    """Yields the alerts; those on webhooks only for an operator that has some."""
    job = f'job="{model.metrics_service}"'
    name = model.name
    yield Alert(
        name="Down",
        expression=f"(sum(up{{{job}}}) or vector(0))",
        comparison="<",
        threshold=1,
        minutes=5,
        severity="critical",
        summary=f"No replica of {name} can be scraped.",
        remedy=f"Look at the pods: kubectl get pods -n {model.namespace} -l control-plane=controller-manager",
    )
    yield Alert(
        name="HasNoLeader",
        expression=f"max(leader_election_master_status{{{job}}})",
        comparison="<",
        threshold=1,
        minutes=5,
        severity="critical",
        summary=f"No replica of {name} leads: nothing is reconciled.",
        remedy=f"Look at the Lease: kubectl describe lease -n {model.namespace}",
    )
    yield Alert(
        name="ReconcileErrors",
        expression=(
            f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{job}}}[10m])) / "
            f"sum by (controller) (rate(controller_runtime_reconcile_total{{{job}}}[10m]))"
        ),
        comparison=">",
        threshold=0.5,
        minutes=15,
        summary="More than half of the reconciles of {{ $labels.controller }} fail.",
        remedy="The log names the objects and the causes: search for the events `failed` and `gave up until the object changes`.",
    )
    yield Alert(
        name="QueueGrows",
        expression=f"min by (name) (min_over_time(workqueue_depth{{{job}}}[15m]))",
        comparison=">",
        threshold=100,
        minutes=15,
        summary="More than 100 objects have been waiting for {{ $labels.name }} all the time.",
        remedy="Raise concurrency= of the controller, or find out why reconciles take long.",
    )
    yield Alert(
        name="ReconcileStuck",
        expression=f"max by (name) (workqueue_longest_running_processor_seconds{{{job}}})",
        comparison=">",
        threshold=600,
        minutes=5,
        summary="A reconcile of {{ $labels.name }} has been running for more than ten minutes.",
        remedy="Bound what it waits for, or set timeout= of the controller.",
    )
    yield Alert(
        name="WatchIsStale",
        expression=f"max by (kind) (navarch_watch_staleness_seconds{{{job}}})",
        comparison=">",
        threshold=120,
        minutes=5,
        summary="The watch of {{ $labels.kind }} has not heard from the API server for two minutes.",
        remedy="/readyz/watches of the pod names the cause.",
    )
    yield Alert(
        name="ApiErrors",
        expression=(
            f'(sum(rate(rest_client_requests_total{{{job},code=~"5..|<error>"}}[10m])) or vector(0)) / '
            f"sum(rate(rest_client_requests_total{{{job}}}[10m]))"
        ),
        comparison=">",
        threshold=0.1,
        minutes=15,
        summary="More than a tenth of the requests to the API server fail.",
        remedy="Look at the API server, and at the network between it and the operator.",
    )
    yield Alert(
        name="EventLoopIsBlocked",
        expression=(
            f"histogram_quantile(0.99, sum by (le) (rate(navarch_event_loop_lag_seconds_bucket{{{job}}}[10m])))"
        ),
        comparison=">",
        threshold=1,
        minutes=10,
        summary="The event loop is blocked for a second or longer.",
        remedy="The log has the line of code: `the event loop is blocked`. Run blocking code in a plain function, which gets a thread.",
    )
    if model.has_webhooks:
        yield from _of_webhooks(model, job)


def _of_webhooks(model: DeploymentModel, job: str) -> Iterator[Alert]:
    yield Alert(
        name="WebhookErrors",
        expression=(
            f'(sum by (webhook) (rate(controller_runtime_webhook_requests_total{{{job},code!="200"}}[10m])) or '
            f"0 * sum by (webhook) (rate(controller_runtime_webhook_latency_seconds_count{{{job}}}[10m])))"
        ),
        comparison=">",
        threshold=0,
        minutes=10,
        summary="The webhook {{ $labels.webhook }} answers with errors.",
        remedy="The operator's log has the causes.",
    )
    if not model.uses_cert_manager:
        yield Alert(
            name="WebhookCertificateExpires",
            expression=f"min by (certificate) (navarch_webhook_certificate_expiry_timestamp_seconds{{{job}}} - time())",
            comparison="<",
            threshold=3 * 24 * 3600,
            minutes=60,
            severity="critical",
            summary="The certificate of the webhooks expires within three days, and was not renewed.",
            remedy="The operator's log says why: it renews certificates when a third of their lifetime is left.",
        )
