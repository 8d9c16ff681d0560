"""Logs, metrics and traces of a running operator.

Optional libraries are imported on first use: `prometheus_client` with the first scrape, OpenTelemetry with
`traces.enable()`.
"""

from navarch.observe import logs, metrics, traces

__all__ = ["logs", "metrics", "traces"]
