"""`config/crd`: the CRDs of the kinds that the project defines."""

from __future__ import annotations

from collections.abc import Iterator

from navarch.errors import DefinitionError
from navarch.operator.webhook_front import CERT_MANAGER
from navarch.project.manifests.model import Custom, DeploymentModel, Json, ManifestObject
from navarch.schema import crd
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.crd_conversion import conversion_section


def crds(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields the CRD of each kind, by name. Raises `DefinitionError` for classes that no CRD can be made of."""
    converted = {pair.old.__kind__.resource for pair in model.operator.conversions}
    for name, versions in sorted(_by_name(model.kinds).items()):
        definition = crd(*versions)
        if name in converted and model.uses_cert_manager:
            _convert(definition, model)
        kind = versions[0].__kind__
        yield ManifestObject(f"crd/bases/{kind.group}_{kind.plural}.yaml", definition)


def _by_name(kinds: tuple[Custom, ...]) -> dict[str, list[Custom]]:
    found: dict[str, list[Custom]] = {}
    for each in kinds:
        versions = found.setdefault(each.__kind__.resource, [])
        if versions and versions[0].__kind__.kind != each.__kind__.kind:
            raise DefinitionError(
                f"{each.__module__}: expected one kind with the plural {each.__kind__.resource}, got {versions[0].__kind__.kind} "
                f"and {each.__kind__.kind}; give one of the classes another plural="
            )
        versions.append(each)
    return found


def _convert(definition: Json, model: DeploymentModel) -> None:
    """Adds the conversion, with the annotation by which cert-manager injects its CA."""
    address = WebhookAddress(service=model.webhook_service, namespace=model.namespace)
    definition["metadata"].setdefault("annotations", {})[CERT_MANAGER] = f"{model.namespace}/{model.certificate}"
    definition["spec"]["conversion"] = conversion_section(address)
