"""The deployment as a Helm chart (`dist/chart`), from the same final objects as `config` and `dist/install.yaml`.

A template is the YAML of an object in which values that people set are expressions. With `namespace.create=true` and
`crds.keep=false` a release in the project's namespace has exactly the objects of `dist/install.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from navarch.api.json_patch import copy_json
from navarch.project.manifests import DeploymentModel, ManifestObject
from navarch.project.manifests.model import Json
from navarch.project.yaml_text import GENERATED, dump

__all__ = ["chart_files"]

_ROOT: Final = "dist/chart"
_OPEN: Final = "{{"
_ESCAPED: Final = '{{ "{{" }}'
_NAMESPACE: Final = "{{ .Release.Namespace }}"
_IMAGE: Final = (
    '"{{ .Values.manager.image.repository }}{{ with .Values.manager.image.tag }}:{{ . }}{{ end }}'
    '{{ with .Values.manager.image.digest }}@{{ . }}{{ end }}"'
)
_KEEP: Final = "helm.sh/resource-policy: keep"
_SEMVER: Final = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")


def chart_files(model: DeploymentModel, manifests: Sequence[ManifestObject]) -> dict[str, str]:
    """Returns the files of the chart by their paths."""
    values = _values(model, manifests)
    documents: dict[str, list[str]] = {}
    for each in manifests:
        documents.setdefault(each.path, []).append(_template(model, each))
    # The heading is a comment of the template language: a comment of YAML would make an empty document of a disabled file.
    heading = "{{- /* " + GENERATED.strip("# \n") + " */ -}}\n"
    return {
        f"{_ROOT}/Chart.yaml": GENERATED + dump(_chart(model)),
        f"{_ROOT}/values.yaml": GENERATED + _values_text(values),
        **{f"{_ROOT}/templates/{path}": heading + "---\n".join(texts) for path, texts in documents.items()},
    }


def _chart(model: DeploymentModel) -> Json:
    version = model.version if _SEMVER.fullmatch(model.version) else "0.1.0"
    return {
        "apiVersion": "v2",
        "name": model.name,
        "description": f"The operator {model.name}.",
        "type": "application",
        "version": version,
        "appVersion": model.version or version,
    }


_COMMENTS: Final = {
    "manager": "The Deployment of the operator. nodeSelector, tolerations and affinity are added if they are set.",
    "crds": "keep: the CRDs, and so all objects of these kinds, stay when the release is uninstalled.",
    "rbacHelpers": "Roles for people who view, edit and administer objects of the operator's kinds.",
    "metrics": "The metrics, their Service, and the roles for those who read them.",
    "prometheus": "The ServiceMonitor and the PrometheusRule of the Prometheus operator.",
    "networkPolicy": "Metrics for namespaces with the label metrics: enabled alone.",
    "namespace": "Whether the chart has the Namespace, with its pod security labels; else: helm install --create-namespace.",
}


def _values(model: DeploymentModel, manifests: Sequence[ManifestObject]) -> Json:
    """Returns the default values: those of the final objects."""
    manager: Json = {}
    for each in manifests:
        if _is_deployment(model, each.object):
            manager["replicas"] = each.object["spec"].get("replicas", model.settings.replicas)
            container = _manager(each.object)
            if container is not None:
                manager |= {"image": _image(container["image"]), "resources": container.get("resources", {})}
    return {
        "manager": {**manager, "nodeSelector": {}, "tolerations": [], "affinity": {}},
        "crds": {"enable": True, "keep": True},
        "rbacHelpers": {"enable": True},
        "metrics": {"enable": True},
        "prometheus": {"enable": model.settings.prometheus},
        "networkPolicy": {"enable": model.settings.network_policy},
        "namespace": {"create": False},
    }


def _values_text(values: Json) -> str:
    return "\n".join(f"# {_COMMENTS[name]}\n{dump({name: value})}" for name, value in values.items())


def _image(reference: str) -> Json:
    """Splits the reference; tag and digest may be empty."""
    name, _, digest = reference.partition("@")
    head, colon, tag = name.rpartition(":")
    repository, tag = (head, tag) if colon and "/" not in tag else (name, "")
    return {"repository": repository, "tag": tag, "digest": digest}


def _is_deployment(model: DeploymentModel, found: Json) -> bool:
    return bool(found["kind"] == "Deployment" and found["metadata"]["name"] == model.named("controller-manager"))


def _manager(deployment: Json) -> Json | None:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next((each for each in containers if each["name"] == "manager"), None)


def _template(model: DeploymentModel, manifest: ManifestObject) -> str:
    """Returns the template of one object."""
    found = copy_json(manifest.object)
    slots = _Slots()
    _insert_namespace(found, model, slots)
    if _is_deployment(model, found):
        _insert_values(found, slots)
    text = slots.filled(dump(found).replace(_OPEN, _ESCAPED))
    if _is_deployment(model, found):
        text = _with_optional_metrics(_with_scheduling(text))
    if found["kind"] == "CustomResourceDefinition":
        text = _with_keep(text)
    condition = _condition(manifest)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _condition(manifest: ManifestObject) -> str:
    """Returns the value on which the object depends; empty if it is always there."""
    name = manifest.path.rpartition("/")[2]
    if manifest.object["kind"] == "Namespace":
        return ".Values.namespace.create"
    if name.startswith("metrics_"):
        return ".Values.metrics.enable"
    if manifest.folder == "rbac" and name.endswith(("_admin_role.yaml", "_editor_role.yaml", "_viewer_role.yaml")):
        return ".Values.rbacHelpers.enable"
    folders = {"crd": "crds", "prometheus": "prometheus", "network-policy": "networkPolicy"}
    return f".Values.{folders[manifest.folder]}.enable" if manifest.folder in folders else ""


class _Slots:
    """Places in an object that become expressions: unique words while YAML is written, expressions afterwards."""

    def __init__(self) -> None:
        self._expressions: dict[str, str] = {}

    def word(self, expression: str) -> str:
        """Returns the word that stands for the expression."""
        word = f"navarchslot{len(self._expressions)}x"
        self._expressions[word] = expression
        return word

    def filled(self, text: str) -> str:
        """Returns the text with the expressions in it."""
        for word, expression in self._expressions.items():
            text = text.replace(word, expression)
        return text


def _insert_namespace(found: Any, model: DeploymentModel, slots: _Slots) -> None:
    """Replaces the project's namespace by that of the release, wherever an object names it."""
    word = slots.word(_NAMESPACE)
    own = model.namespace
    places = (f".{own}.svc", f"{own}/{model.certificate}", f"-n {own}")

    def replaced(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: replaced(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [replaced(each, "") for each in value]
        if not isinstance(value, str) or own not in value:
            return value
        if key == "namespace" and value == own:
            return word
        return next((value.replace(own, word) for place in places if place in value), value)

    if found["kind"] == "Namespace":
        found["metadata"]["name"] = word
    elif found["kind"] == "CustomResourceDefinition":  # its schema has texts of the user
        found["metadata"] = replaced(found["metadata"], "")
        if "conversion" in found["spec"]:
            found["spec"]["conversion"] = replaced(found["spec"]["conversion"], "")
    else:
        found |= {name: replaced(value, name) for name, value in found.items()}


def _insert_values(deployment: Json, slots: _Slots) -> None:
    deployment["spec"]["replicas"] = slots.word("{{ .Values.manager.replicas }}")
    container = _manager(deployment)
    if container is not None:
        container["image"] = slots.word(_IMAGE)
        container["resources"] = slots.word("{{- toYaml .Values.manager.resources | nindent 10 }}")


def _with_scheduling(text: str) -> str:
    """Adds fields of the pod that are there only if they are set."""
    lines = "".join(
        f"      {{{{- with .Values.manager.{name} }}}}\n"
        f"      {name}:\n        {{{{- toYaml . | nindent 8 }}}}\n"
        f"      {{{{- end }}}}\n"
        for name in ("nodeSelector", "tolerations", "affinity")
        if f"\n      {name}:" not in text
    )
    return text.replace("\n      containers:\n", f"\n{lines}      containers:\n", 1)


def _with_optional_metrics(text: str) -> str:
    """Makes the flag of the metrics depend on `metrics.enable`."""
    return re.sub(
        r"^( *)- --metrics-bind-address=.*\n",
        lambda found: f"{found[1]}{{{{- if .Values.metrics.enable }}}}\n{found[0]}{found[1]}{{{{- end }}}}\n",
        text,
        flags=re.MULTILINE,
    )


def _with_keep(text: str) -> str:
    """Adds the annotation by which Helm keeps a CRD."""
    head, separator, spec = text.partition("\nspec:\n")
    if "\n  annotations:\n" in head:
        kept = f"\n  annotations:\n    {{{{- if .Values.crds.keep }}}}\n    {_KEEP}\n    {{{{- end }}}}\n"
        return head.replace("\n  annotations:\n", kept, 1) + separator + spec
    kept = f"\n  {{{{- if .Values.crds.keep }}}}\n  annotations:\n    {_KEEP}\n  {{{{- end }}}}"
    return head + kept + separator + spec
