"""The roles of a project, as `config/rbac` has them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from navarch.errors import ConfigError
from navarch.operator.roles import Permission
from navarch.project.files import read_text
from navarch.project.permissions import granted_to
from navarch.project.project import Project

__all__ = ["ROLES_FOLDER", "ProjectRoles"]

ROLES_FOLDER: Final = "config/rbac"
_KINDS: Final = frozenset({"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
_GENERATE: Final = "run: navarch generate rbac"


@dataclass(frozen=True, slots=True)
class ProjectRoles:
    """Roles, bindings and the ServiceAccount of a project's operator."""

    manifests: tuple[dict[str, Any], ...]
    account: str
    """The ServiceAccount as the API server names it."""

    @staticmethod
    def read(project: Project) -> ProjectRoles:
        """Reads all manifests in `config/rbac`. Raises `ConfigError` if a file is broken, or nothing is granted."""
        files = sorted((project.root / ROLES_FOLDER).glob("*.yaml"))
        found = [manifest for file in files for manifest in _manifests(f"{ROLES_FOLDER}/{file.name}", read_text(file))]
        accounts = [each["metadata"] for each in found if each["kind"] == "ServiceAccount"]
        if len(accounts) > 1:
            names = ", ".join(each["name"] for each in accounts)
            raise ConfigError(f"{ROLES_FOLDER}: expected one ServiceAccount, got {names}; {_GENERATE}")
        default = {"name": f"{project.file.project_name}-controller-manager"}
        metadata = accounts[0] if accounts else default
        namespace = metadata.get("namespace", project.settings.namespace)
        roles = ProjectRoles(tuple(found), f"system:serviceaccount:{namespace}:{metadata['name']}")
        if not roles.granted():
            raise ConfigError(
                f"{ROLES_FOLDER}: expected roles that are bound to {roles.account}, got none; {_GENERATE}"
            )
        return roles

    def moved(self, namespaces: Mapping[str, str]) -> ProjectRoles:
        """Returns the same roles for an operator whose namespaces have other names."""
        _, _, own, name = self.account.split(":")
        moved = tuple(_moved(each, namespaces) for each in self.manifests)
        return ProjectRoles(moved, f"system:serviceaccount:{namespaces.get(own, own)}:{name}")

    def granted(self) -> dict[Permission, str]:
        """Returns the permissions of the operator, with the role of each."""
        return granted_to(self.manifests, self.account)


def _manifests(name: str, text: str | None) -> list[dict[str, Any]]:
    try:
        documents = [*yaml.safe_load_all(text or "")]
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: expected YAML, got something else: {' '.join(str(error).split())}") from None
    return [each for each in documents if isinstance(each, dict) and each.get("kind") in _KINDS]


def _moved(manifest: dict[str, Any], namespaces: Mapping[str, str]) -> dict[str, Any]:
    moved = copy.deepcopy(manifest)
    for place in (moved["metadata"], *(moved.get("subjects") or ())):
        if place.get("namespace") in namespaces:
            place["namespace"] = namespaces[place["namespace"]]
    return moved
