"""How a running operator is seen: logs, metrics, traces.

Nothing here is imported that an operator without an endpoint or a tracer would not need: `prometheus_client` comes with
the first scrape, OpenTelemetry with `traces.enable()`.
"""

from navarch.observe import logs, metrics, traces

__all__ = ["logs", "metrics", "traces"]
