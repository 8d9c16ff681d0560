"""CRDs and their objects, and the steps that make them and take them away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.custom.asking import TABLE, Json, Step
from cluster.custom.serving import CRDS

__all__ = ["INTEGER", "TEXT", "definition", "gone", "has_condition", "installed", "made"]

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def definition(plural: str, schema: Json, group: str = "ex.dev", **spec: Any) -> Json:
    """A CRD with one version."""
    kind = plural.removesuffix("s").capitalize()
    root = {"type": "object", "properties": {"spec": schema, "status": {"type": "object"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        }
        | spec,
    }


def made(kind: str, name: str, spec: Any = None, group: str = "ex.dev/v1", **more: Any) -> Json:
    """An object of a custom kind."""
    metadata = {"name": name} | more.pop("metadata", {})
    return {"apiVersion": group, "kind": kind, "metadata": metadata} | ({} if spec is None else {"spec": spec}) | more


def has_condition(kind: str, status: str, reason: str = "") -> Callable[[int, Json], bool]:
    """Whether an answer is an object with that condition."""

    def holds(code: int, answer: Json) -> bool:
        found = (answer.get("status") or {}).get("conditions") or []
        return code == 200 and any(
            each["type"] == kind and each["status"] == status and reason in {"", each["reason"]} for each in found
        )

    return holds


def installed(crd: Json) -> list[Step]:
    """A CRD is made, and waited for until its objects are served."""
    name, spec = crd["metadata"]["name"], crd["spec"]
    home = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    version = next(each["name"] for each in spec["versions"] if each["served"])
    path = f"/apis/{spec['group']}/{version}{home}/{spec['names']['plural']}"
    return [
        Step(f"create the CRD {name}", "POST", CRDS, crd),
        Step(f"{name} is established", "GET", f"{CRDS}/{name}", until=has_condition("Established", "True")),
        Step(f"{name} is served", "GET", path, accept=TABLE, until=lambda code, _: code == 200),
    ]


def gone(*names: str) -> list[Step]:
    """CRDs are deleted, and waited for until they are gone."""
    steps = []
    for name in names:
        steps.append(Step(f"delete the CRD {name}", "DELETE", f"{CRDS}/{name}"))
        steps.append(Step(f"{name} is gone", "GET", f"{CRDS}/{name}", until=lambda code, _: code == 404))
    return steps
