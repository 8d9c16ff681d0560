"""What a node answers over HTTP, as far as Kubernetes' node has the same: its health, its pods, a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from navarch.api import to_builtins
from navarch.cluster.nodes.pods.worker import PodWorker
from navarch.cluster.streams import NodePage
from navarch.observe.exposition import Metrics
from navarch.observe.families import Family, Sample

__all__ = ["page"]

_TEXT: Final = "text/plain; charset=utf-8"
_RUNNING_PODS: Final = Family("gauge", "kubelet_running_pods", "Number of pods that have a running pod sandbox", ())
_RUNNING_CONTAINERS: Final = Family(
    "gauge", "kubelet_running_containers", "Number of containers currently running", ("container_state",)
)
_NAME: Final = Family("gauge", "kubelet_node_name", "The node's name. The count is always 1.", ("node",))


def page(path: str, node: str, workers: Sequence[PodWorker]) -> NodePage:
    """The answer of the node of that name, which has these pods."""
    found: Callable[[], NodePage] | None = {
        **dict.fromkeys(("/healthz", "/healthz/ping", "/healthz/syncloop"), lambda: NodePage(200, _TEXT, b"ok")),
        **dict.fromkeys(("/pods", "/pods/"), lambda: _pods(workers)),
        "/metrics": lambda: _metrics(node, workers),
    }.get(path)
    return NodePage(404, _TEXT, b"404 page not found\n") if found is None else found()


def _pods(workers: Sequence[PodWorker]) -> NodePage:
    items = [to_builtins(worker.home.pod) for worker in workers]
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
    return NodePage(200, "application/json", msgspec.json.encode(listed))


def _metrics(node: str, workers: Sequence[PodWorker]) -> NodePage:
    shown = Metrics()
    shown.add(_Numbers(node, workers))
    body, content_type = shown.exposition()
    return NodePage(200, content_type, body)


class _Numbers:
    """See `Part`."""

    def __init__(self, node: str, workers: Sequence[PodWorker]) -> None:
        self._node = node
        self._workers = workers

    def samples(self) -> Iterator[Sample]:
        """How many pods and containers run."""
        running = [sum(1 for _ in worker.running()) for worker in self._workers]
        yield Sample(_NAME, (self._node,), 1)
        yield Sample(_RUNNING_PODS, (), sum(1 for count in running if count))
        yield Sample(_RUNNING_CONTAINERS, ("running",), sum(running))
