"""kopf's webhook server, on uvloop; it needs an API server to start, for it looks up the kinds of its handlers.

The other clients are hidden because kopf imports those it finds; an operator of kopf's would not have them.
"""

import os
import sys
from pathlib import Path
from typing import Any

for client in ("kubernetes", "kubernetes_asyncio", "pykube"):
    sys.modules[client] = None

import kopf  # noqa: E402 - after the others are hidden
import uvloop  # noqa: E402

certificates = Path(os.environ["BENCH_CERTIFICATES"])


@kopf.on.login()
def login(**known: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_kubeconfig(**known)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ["BENCH_PORT"]),
        certfile=certificates / "tls.crt",
        pkeyfile=certificates / "tls.key",
        cafile=certificates / "ca.crt",
    )


@kopf.on.validate("bench.example.com", "v1", "widgets", id="validate")
async def check(spec: kopf.Spec, **_: Any) -> None:
    if spec.get("replicas", 1) > 100:
        raise kopf.AdmissionError("spec.replicas: must be at most 100")
    if not spec.get("ports"):
        raise kopf.AdmissionError("spec.ports: must not be empty")


@kopf.on.mutate("bench.example.com", "v1", "widgets", id="mutate")
async def default(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.labels["mutated"] = "yes"
    if not spec.get("image"):
        patch.spec["image"] = "registry.example.com/team/default:1.0.0"


kopf.configure(quiet=True)
uvloop.run(kopf.operator(clusterwide=True, standalone=True))
