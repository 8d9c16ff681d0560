"""The deployment as kustomize folders (`config/**`) and as one file (`dist/install.yaml`).

`config/default` only lists the other folders: names, namespaces and patches are final in the objects themselves, so that the
chart, which kustomize does not write, has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

from navarch.project.dependency_order import rank_of
from navarch.project.manifests import DeploymentModel, ManifestObject
from navarch.project.manifests.model import Json
from navarch.project.yaml_text import GENERATED, dump

__all__ = ["ObjectText", "Part", "install_text", "installed", "kustomize_files"]

ObjectText = Callable[[Json], str]
"""Returns an object as YAML, possibly with comments."""
Part = Literal["crd", "rbac", "manifests"]

_FOLDERS: Final = ("crd", "rbac", "manager", "webhook", "certmanager", "prometheus", "network-policy")


def installed(manifests: Iterable[ManifestObject]) -> list[Json]:
    """Returns the objects of the installation in the order in which they depend on each other."""
    return sorted((each.object for each in manifests if each.is_installed), key=rank_of)


def install_text(manifests: Iterable[ManifestObject], text: ObjectText = dump) -> str:
    """Returns the content of `dist/install.yaml`."""
    return GENERATED + "---\n".join(map(text, installed(manifests)))


def kustomize_files(
    model: DeploymentModel, manifests: Sequence[ManifestObject], text: ObjectText = dump
) -> dict[Part, dict[str, str]]:
    """Returns the files of `config` by their paths, for each part."""
    parts: dict[Part, dict[str, str]] = {"crd": {}, "rbac": {}, "manifests": {}}
    for folder in _FOLDERS:
        part: Part = "crd" if folder == "crd" else "rbac" if folder == "rbac" else "manifests"
        parts[part].update(_folder_files(folder, [each for each in manifests if each.folder == folder], text))
    parts["manifests"].update(_other_folders(model, manifests))
    return parts


def _folder_files(folder: str, manifests: Sequence[ManifestObject], text: ObjectText) -> dict[str, str]:
    documents: dict[str, list[str]] = {}
    for each in manifests:
        documents.setdefault(each.path, []).append(text(each.object))
    files = {f"config/{path}": GENERATED + "---\n".join(texts) for path, texts in documents.items()}
    files[f"config/{folder}/kustomization.yaml"] = _kustomization(path.partition("/")[2] for path in documents)
    return files


def _kustomization(resources: Iterable[str]) -> str:
    content = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(resources)}
    return GENERATED + dump(content)


def _other_folders(model: DeploymentModel, manifests: Sequence[ManifestObject]) -> dict[str, str]:
    """Returns `default`, `samples`, and the bases of the bundle (`manifests`, `scorecard`)."""
    used = {each.folder for each in manifests if each.is_installed}
    base = ["../default", *(["../samples"] if model.samples else []), "../scorecard"]
    return {
        "config/default/kustomization.yaml": _kustomization(f"../{folder}" for folder in _FOLDERS if folder in used),
        "config/samples/kustomization.yaml": _kustomization(model.samples),
        "config/manifests/kustomization.yaml": _kustomization(base),
        "config/scorecard/kustomization.yaml": _kustomization(["bases/config.yaml"]),
        "config/scorecard/bases/config.yaml": GENERATED
        + dump(
            {
                "apiVersion": "scorecard.operatorframework.io/v1alpha3",
                "kind": "Configuration",
                "metadata": {"name": "config"},
                "stages": [{"parallel": True, "tests": []}],
            }
        ),
    }
