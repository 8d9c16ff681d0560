"""kopf, with all that makes it faster, and without what only costs it.

`on.event` is its level-style handler: it writes nothing of its own to the object. The other clients are hidden because
kopf imports those it finds; an operator of kopf's would not have them.
"""

import sys
from typing import Any

for client in ("kubernetes", "kubernetes_asyncio", "pykube"):
    sys.modules[client] = None

import kopf  # noqa: E402 - after the others are hidden
import uvloop  # noqa: E402

from runtimes.job import Job  # noqa: E402

job = Job()


@kopf.on.login()
def login(**known: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_kubeconfig(**known)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
    settings.queueing.worker_limit = 32
    settings.queueing.idle_timeout = 0.001  # a worker belongs to one object; by default it is kept for 5 s


@kopf.on.event("bench.example.com", "v1", "widgets")
async def reconcile(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    if job.name == "write" and body.get("status", {}).get("phase") != job.phase:
        patch.status["phase"] = job.phase
        patch.status["observedGeneration"] = body["metadata"]["generation"]
        return
    job.reconciled(body["metadata"]["name"], body["spec"]["note"])  # of a write this is the echo


kopf.configure(quiet=True)
uvloop.run(kopf.operator(clusterwide=True, standalone=True))
