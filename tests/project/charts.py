"""What Helm makes of the charts in `golden`, and of releases of them on a real API server: `make judge NAME=charts`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import yaml

from judge import HELM, Helm, Recording, Verdicts
from navarch.api import Kind
from navarch.client import Client, connect, load
from navarch.errors import NotFound
from navarch.k8s.apps.v1 import Deployment

GOLDEN: Final = Path(__file__).parent / "golden"
DATA: Final = Path(__file__).parent / "data"
NAMESPACE: Final = "cache-operator-system"
CASES: Final = ("small", "full", "namespaced")
_RELEASE: Final = "cache"
_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_SAME: Final = "--set=namespace.create=true,crds.keep=false"
"""With these values the chart has exactly the objects of install.yaml."""


def chart(case: str) -> str:
    """The folder of a chart."""
    return str(GOLDEN / case / "dist/chart")


def objects(text: str) -> list[Any]:
    """The objects of a stream of documents, by kind and name."""
    found = [each for each in yaml.safe_load_all(text) if each]
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))


def ask(helm: Helm) -> Verdicts:
    """Lints each chart, renders it twice, and takes one release through its life."""
    place = ("--namespace", NAMESPACE)
    return {
        "chart_lint.json": {case: _lint(helm, case) for case in CASES},
        "chart_objects.json": {
            case: objects(helm.output("template", _RELEASE, chart(case), *place, _SAME)) for case in CASES
        },
        "chart_defaults.json": {
            case: [_named(each) for each in objects(helm.output("template", _RELEASE, chart(case), *place))]
            for case in CASES
        },
        "chart_release.json": asyncio.run(_life(helm, place)),
    }


def _lint(helm: Helm, case: str) -> list[str]:
    lines = helm.output("lint", "--strict", chart(case)).splitlines()
    return [line for line in lines if line and not line.startswith("==>")]


def _named(found: Any) -> str:
    kept = (found["metadata"].get("annotations") or {}).get("helm.sh/resource-policy")
    return f"{found['kind']} {found['metadata']['name']}{' (kept)' if kept else ''}"


async def _life(helm: Helm, place: tuple[str, ...]) -> dict[str, Any]:
    """Install, upgrade, rollback and uninstall, and what the cluster has after each."""
    told: dict[str, Any] = {}
    steps = {
        "install": ("install", _RELEASE, chart("small"), "--create-namespace"),
        "upgrade": ("upgrade", _RELEASE, chart("small"), "--set=manager.replicas=3,metrics.enable=false"),
        "rollback": ("rollback", _RELEASE, "1"),
        "uninstall": ("uninstall", _RELEASE),
    }
    async with connect(load(helm.kubeconfig)) as client:
        for step, arguments in steps.items():
            await asyncio.to_thread(helm.output, *arguments, *place)
            told[step] = {"deployment": await _deployment(client), "crd": await _has_crd(client)}
        releases = await asyncio.to_thread(helm.output, "list", "--all-namespaces", "--output=json")
        told["releases"] = json.loads(releases)
        await client.delete(_CRDS, "memcacheds.cache.example.com")
    return told


async def _deployment(client: Client) -> Any:
    try:
        found = await client.get(Deployment, "cache-operator-controller-manager", namespace=NAMESPACE)
    except NotFound:
        return None
    flags = found.spec.template.spec.containers[0].args or []
    return {"replicas": found.spec.replicas, "metrics": any("--metrics-bind-address" in flag for flag in flags)}


async def _has_crd(client: Client) -> bool:
    try:
        await client.get(_CRDS, "memcacheds.cache.example.com")
    except NotFound:
        return False
    return True


RECORDING: Final = Recording(
    "charts",
    HELM,
    DATA,
    ("chart_lint.json", "chart_objects.json", "chart_defaults.json", "chart_release.json"),
    ask,
)
