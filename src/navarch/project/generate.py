"""`generate`: writes what follows from a project's code, or tells what would be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from navarch.operator import Operator
from navarch.operator.roles import Permission
from navarch.project.chart import chart_files
from navarch.project.dashboards import dashboard_files
from navarch.project.generated_files import GenerateReport, plan_generated, write_generated
from navarch.project.kustomize import ObjectText, install_text, kustomize_files
from navarch.project.loading import load_kinds, load_project
from navarch.project.manifests import DeploymentModel, ManifestObject, manifests_of
from navarch.project.manifests.model import Custom, Json
from navarch.project.manifests.rbac import OPERATOR_ROLES
from navarch.project.patches import apply_patches, read_patches
from navarch.project.permissions import GrantedPermission, granted_permissions, optional_permissions, role_text
from navarch.project.project import Project
from navarch.project.recorded_calls import Recording
from navarch.project.scaffold.record import refuse_open_conflicts
from navarch.project.yaml_text import dump

__all__ = ["PARTS", "Deployment", "Part", "deployment_of", "generate", "load_deployment"]

Part = Literal["crd", "rbac", "manifests", "install", "chart", "dashboards"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
_SAMPLES: Final = "config/samples"
_NOT_SAMPLES: Final = frozenset({"kustomization.yaml"})


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment of a project: what it follows from, and its final objects, after the user's patches."""

    model: DeploymentModel
    manifests: list[ManifestObject]
    text: ObjectText = dump

    def files(self, part: Part) -> dict[str, str]:
        """Returns the generated files of that part, by their paths."""
        if part == "install":
            return {"dist/install.yaml": install_text(self.manifests, self.text)}
        if part == "chart":
            return chart_files(self.model, self.manifests)
        if part == "dashboards":
            return dashboard_files(self.model)
        return kustomize_files(self.model, self.manifests, self.text)[part]


def load_deployment(project: Project) -> Deployment:
    """Loads the project's code and returns its deployment. Raises `ConfigError` or `DefinitionError` with the place."""
    operator = load_project(project)
    return deployment_of(project, operator, load_kinds(project, operator))


def deployment_of(project: Project, operator: Operator, kinds: Iterable[Custom]) -> Deployment:
    """Returns the deployment of this operator with the settings, the patches and the recorded calls of the project."""
    model = DeploymentModel.of(project, operator, kinds, _samples(project.root))
    recording = Recording.read(project.root)
    granted = granted_permissions(model.operator, recording, own_namespace=model.namespace)
    optional = optional_permissions(model.operator, recording, own_namespace=model.namespace)
    manifests = manifests_of(model, _plain(granted), {role: _plain(found) for role, found in optional.items()})
    explained = [*granted, *(each for found in optional.values() for each in found)]
    roles = {model.named(name) for name in (*OPERATOR_ROLES.values(), *optional)}
    texts: dict[int, str] = {}  # the objects live as long as the deployment; each is in two files or more

    def text(found: Json) -> str:
        if id(found) not in texts:
            is_own = found["kind"] in {"ClusterRole", "Role"} and found["metadata"]["name"] in roles
            texts[id(found)] = role_text(found, explained) if is_own else dump(found)
        return texts[id(found)]

    declared = Project.of(project.root, project.file).settings.namespace
    patches = [each.moved(declared, model.namespace) for each in read_patches(project.root)]
    return Deployment(model, apply_patches(manifests, patches), text)


def _plain(granted: Iterable[GrantedPermission]) -> list[Permission]:
    return [each.permission for each in granted]


def generate(project: Project, parts: Iterable[Part] = PARTS, *, check: bool = False) -> dict[Part, GenerateReport]:
    """Writes the generated files of these parts and returns what became of them; with `check`, writes nothing.

    All files are rendered before the first one is written. Raises `ConfigError` or `DefinitionError`, also while a
    conflict of `navarch update` is open.
    """
    if not check:
        refuse_open_conflicts(project.root)
    deployment = load_deployment(project)
    files: Mapping[Part, dict[str, str]] = {part: deployment.files(part) for part in parts}
    act = plan_generated if check else write_generated
    return {part: act(project.root, found, part=part) for part, found in files.items()}


def _samples(root: Path) -> list[str]:
    folder = root / _SAMPLES
    found = (each.name for each in folder.glob("*.yaml")) if folder.is_dir() else ()
    return [name for name in found if name not in _NOT_SAMPLES]
