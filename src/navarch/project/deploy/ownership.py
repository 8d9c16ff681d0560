"""To whom an object in the cluster belongs: to this deployment, or to somebody else."""

from __future__ import annotations

from typing import Final

from navarch.api import Dynamic
from navarch.project.deploy.release import MANAGED_BY, OWNER, Release

__all__ = ["foreign_mark", "foreign_owner"]

_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_OLM_OWNER: Final = "olm.owner"
_OF_SERVER: Final = frozenset({"kube-controller-manager", "kube-apiserver"})


def foreign_owner(found: Dynamic, release: Release) -> str:
    """Returns to whom else the object belongs; empty if it is the release's own. CRDs have no mark: see `install_crd`."""
    annotations = found.metadata.get("annotations") or {}
    labels = found.metadata.get("labels") or {}
    if annotations.get(OWNER) == release.owner and labels.get(MANAGED_BY) == "navarch":
        return ""
    if marked := foreign_mark(found, release):
        return marked
    writers = {entry.get("manager", "") for entry in found.metadata.get("managedFields") or ()}
    return ", ".join(sorted(writers - _OF_SERVER - {""})) or "somebody unknown"


def foreign_mark(found: Dynamic, release: Release) -> str:
    """Returns whose marks the object has; empty if it has none, or the release's own."""
    annotations: dict[str, str] = found.metadata.get("annotations") or {}
    labels: dict[str, str] = found.metadata.get("labels") or {}
    if (owner := annotations.get(OWNER, release.owner)) != release.owner:
        namespace, _, project = owner.partition("/")
        return f"the deployment of {project} in namespace {namespace}"
    if helm := annotations.get(_HELM_RELEASE):
        return f"the Helm release {helm}"
    if olm := labels.get(_OLM_OWNER):
        return f"OLM's {olm}"
    if (manager := labels.get(MANAGED_BY, "navarch")) != "navarch":
        return manager
    owners = found.metadata.get("ownerReferences") or ()
    return f"{owners[0]['kind']} {owners[0]['name']}" if owners else ""
