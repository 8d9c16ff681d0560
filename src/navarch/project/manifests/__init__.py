"""The one model of a deployment: from an operator and its settings to final objects, one module per folder of `config`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from navarch.operator.roles import Permission
from navarch.project.manifests.crds import crds
from navarch.project.manifests.manager import manager
from navarch.project.manifests.model import DeploymentModel, ManifestObject
from navarch.project.manifests.monitoring import monitoring
from navarch.project.manifests.network_policies import network_policies
from navarch.project.manifests.rbac import rbac
from navarch.project.manifests.webhooks import webhooks

__all__ = ["DeploymentModel", "ManifestObject", "manifests_of"]


def manifests_of(
    model: DeploymentModel, permissions: Iterable[Permission], optional: Mapping[str, Sequence[Permission]]
) -> list[ManifestObject]:
    """Returns all objects of the deployment. Raises `DefinitionError`.

    The operator is granted these permissions; `optional` ones, by role, are granted by its administrators.
    """
    return [
        *crds(model),
        *rbac(model, permissions, optional),
        *manager(model),
        *webhooks(model),
        *monitoring(model),
        *network_policies(model),
    ]
