"""`generate`: writes what follows from a project's code, or tells what would be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from navarch.project.chart import chart_files
from navarch.project.dashboards import dashboard_files
from navarch.project.generated_files import GenerateReport, plan_generated, write_generated
from navarch.project.kustomize import ObjectText, install_text, kustomize_files
from navarch.project.loading import load_kinds, load_project
from navarch.project.manifests import DeploymentModel, ManifestObject, manifests_of
from navarch.project.manifests.model import Json
from navarch.project.manifests.rbac import OPERATOR_ROLES
from navarch.project.patches import apply_patches, read_patches
from navarch.project.permissions import granted_permissions, role_text
from navarch.project.project import Project
from navarch.project.recorded_calls import Recording
from navarch.project.scaffold.record import refuse_open_conflicts
from navarch.project.yaml_text import dump

__all__ = ["PARTS", "Deployment", "Part", "generate", "load_deployment"]

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
    model = DeploymentModel.of(project, operator, load_kinds(project, operator), _samples(project.root))
    granted = granted_permissions(model.operator, Recording.read(project.root), own_namespace=model.namespace)
    manifests = manifests_of(model, [each.permission for each in granted])

    texts: dict[int, str] = {}  # the objects live as long as the deployment; each is in two files or more

    def text(found: Json) -> str:
        if id(found) not in texts:
            texts[id(found)] = role_text(found, granted) if _is_role_of(model, found) else dump(found)
        return texts[id(found)]

    return Deployment(model, apply_patches(manifests, read_patches(project.root)), text)


def _is_role_of(model: DeploymentModel, found: Json) -> bool:
    """Returns whether the object is a role of the operator itself, and not one for people."""
    return found["kind"] in {"ClusterRole", "Role"} and found["metadata"]["name"] in {
        model.named(name) for name in OPERATOR_ROLES.values()
    }


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
