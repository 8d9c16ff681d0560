"""What webhooks are shown of a run of requests."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from cluster.admission.engines import APPLY, MERGE, Engine, until_known
from cluster.admission.hooks import HookServer
from cluster.admission.webhook_cases import CONFIGMAPS, ROOT

Json = dict[str, Any]
_INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
_LABELS = {"reviewed": "yes"}


def _map(**metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": _LABELS, **metadata}, "data": {"a": "b"}}


def _ingress() -> Json:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    metadata = {"name": "i", "labels": _LABELS}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {"defaultBackend": backend},
    }


async def run(engine: Engine) -> None:
    """Sends the requests."""
    one = f"{CONFIGMAPS}/reviewed"
    await engine.ask("POST", CONFIGMAPS, _map(name="reviewed"), fieldManager="me")
    await engine.ask("POST", CONFIGMAPS, _map(name="reviewed"))
    labels = {"metadata": {"annotations": {"a": "b"}}}
    await engine.ask("PATCH", one, labels, media_type=MERGE, fieldValidation="Strict")
    await engine.ask("PATCH", one, {"data": {"x": "y"}}, media_type=MERGE, dryRun="All")
    await engine.ask("PATCH", f"{CONFIGMAPS}/applied", _map(name="applied"), media_type=APPLY, fieldManager="m")
    await engine.ask(
        "PATCH", f"{CONFIGMAPS}/applied", _map(name="applied"), media_type=APPLY, fieldManager="m", force="true"
    )
    await engine.ask("POST", _INGRESSES, _ingress())
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}}
    await engine.ask("PATCH", f"{_INGRESSES}/i/status", status, media_type=MERGE, fieldManager="s")
    await engine.ask("PUT", f"{_INGRESSES}/i", {**_ingress(), **status})
    await engine.ask("PUT", f"{_INGRESSES}/i/status", {**_ingress(), "status": {}})
    await engine.ask("PUT", f"{CONFIGMAPS}/applied", _map(name="applied", annotations={"c": "d"}))
    await engine.ask("DELETE", f"{_INGRESSES}/i", {"propagationPolicy": "Background"})
    await engine.ask("DELETE", one)
    await engine.ask("DELETE", CONFIGMAPS, labelSelector="reviewed=yes")


async def install(engine: Engine, server: HookServer) -> None:
    """One webhook of each kind, for what the run is about; returns when both are asked."""
    for kind in ("Mutating", "Validating"):
        rules = [
            {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
            {
                "operations": ["*"],
                "apiGroups": ["networking.k8s.io"],
                "apiVersions": ["v1"],
                "resources": ["ingresses/*"],
            },
        ]
        hook = {
            "name": f"{kind.lower()}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": f"{server.url}/{kind.lower()}", "caBundle": server.bundle},
            "rules": rules,
            "objectSelector": {"matchLabels": _LABELS},
        }
        value: Json = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration"}
        value |= {"metadata": {"name": "reviews"}, "webhooks": [hook]}
        answer = await engine.ask("POST", f"{ROOT}/{kind.lower()}webhookconfigurations", value)
        assert answer.code == 201, answer.body
    await until_known("both webhooks", partial(_are_asked, engine, server))
    server.reviews.clear()


async def _are_asked(engine: Engine, server: HookServer) -> bool:
    await engine.ask("POST", CONFIGMAPS, _map(name="known"), dryRun="All")
    return {path.partition("?")[0] for path, _ in server.reviews} == {"/mutating", "/validating"}


async def remove(engine: Engine) -> None:
    """Deletes the configurations."""
    for kind in ("mutating", "validating"):
        await engine.ask("DELETE", f"{ROOT}/{kind}webhookconfigurations/reviews")


def shown(server: HookServer) -> list[Any]:
    """The reviews, without what differs from run to run."""
    return [[path, _steady(review["request"])] for path, review in server.reviews]


_VARYING = {"uid": "UID", "resourceVersion": "VERSION"}


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _VARYING.get(key) or _steady(_ordered(key, each)) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [_steady(each) for each in value]
    return re.sub(r"^\d{4}-\d\d-\d\dT.*Z$", "TIME", value) if isinstance(value, str) else value


def _ordered(key: str, value: Any) -> Any:
    """Managers by their names: they come by the second of their last write."""
    if key != "managedFields":
        return value
    return sorted(value, key=lambda each: (each["manager"], each["operation"], each.get("subresource", "")))
