"""Admission as a fresh kube-apiserver has it: its parts, in its order."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.access.authorization import Authorizer
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.certificates import CertificateRights
from navarch.cluster.server.pipeline.admission.grants import Grants
from navarch.cluster.server.pipeline.admission.kept import Kept
from navarch.cluster.server.pipeline.admission.matching import Equivalents, FindNamespace
from navarch.cluster.server.pipeline.admission.namespaces import NamespaceLifecycle
from navarch.cluster.server.pipeline.admission.objects import Objects
from navarch.cluster.server.pipeline.admission.plugins.limits import DefaultLimits, Limits
from navarch.cluster.server.pipeline.admission.plugins.nodes import NodeTaint
from navarch.cluster.server.pipeline.admission.plugins.priorities import OneDefaultPriority, Priorities
from navarch.cluster.server.pipeline.admission.plugins.protection import StorageProtection
from navarch.cluster.server.pipeline.admission.plugins.quotas import Quotas
from navarch.cluster.server.pipeline.admission.plugins.runtime_classes import RuntimeClasses
from navarch.cluster.server.pipeline.admission.plugins.service_accounts import ServiceAccounts
from navarch.cluster.server.pipeline.admission.plugins.storage_classes import ClaimResizing, DefaultStorageClass
from navarch.cluster.server.pipeline.admission.plugins.table import Mutating, Plugins
from navarch.cluster.server.pipeline.admission.plugins.tolerations import DefaultTolerations
from navarch.cluster.server.pipeline.admission.pod_security.admission import PodSecurity
from navarch.cluster.server.pipeline.admission.pod_security.existing_pods import ExistingPods
from navarch.cluster.server.pipeline.admission.policies.bound import Judging
from navarch.cluster.server.pipeline.admission.policies.mutating import MutatingPolicies
from navarch.cluster.server.pipeline.admission.policies.validating import ValidatingPolicies
from navarch.cluster.server.pipeline.admission.webhooks.hook import Asking
from navarch.cluster.server.pipeline.admission.webhooks.mutating import MutatingWebhooks
from navarch.cluster.server.pipeline.admission.webhooks.places import service_addresses
from navarch.cluster.server.pipeline.admission.webhooks.validating import ValidatingWebhooks
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.webhook_client import ResolveService, WebhookClient

__all__ = ["StandardAdmission", "Surroundings"]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What admission needs of the server around it. `resolve_service` finds webhooks behind services; by default they are
    where kube-apiserver looks for them: at the cluster IP, or at the name of an ExternalName service.
    """

    registry: Registry
    catalog: Catalog
    authorizer: Authorizer
    find_namespace: FindNamespace
    clock: Clock
    rng: random.Random
    resolve_service: ResolveService | None = None


class StandardAdmission:
    """Everything between authorization and storage. `followed` tells what it must be told of; `close` it in the end."""

    def __init__(self, around: Surroundings) -> None:
        objects = Objects(around.registry, around.catalog)
        equivalents = Equivalents(around.catalog)
        mutating, validating, policies, bindings = Kept(), Kept(), Kept(), Kept()
        changing, changing_bindings = Kept(), Kept()
        self._quotas = Quotas(around.registry, around.catalog)
        self.followed: Mapping[str, Callable[[Json | None, Json | None], None]] = {
            "/registry/mutatingwebhookconfigurations/": mutating.changed,
            "/registry/validatingwebhookconfigurations/": validating.changed,
            "/registry/mutatingadmissionpolicies/": changing.changed,
            "/registry/mutatingadmissionpolicybindings/": changing_bindings.changed,
            "/registry/validatingadmissionpolicies/": policies.changed,
            "/registry/validatingadmissionpolicybindings/": bindings.changed,
            "/registry/resourcequotas/": self._quotas.changed,
        }
        self._caller = WebhookClient(around.clock, around.resolve_service or service_addresses(objects))
        asking = Asking(self._caller, equivalents, around.find_namespace, around.authorizer, around.rng)
        judging = Judging(objects, equivalents, around.find_namespace, around.authorizer)
        self._lifecycle = NamespaceLifecycle(around.find_namespace)
        self._grants = Grants(around.authorizer)
        self._certificates = CertificateRights(around.authorizer)
        classes = RuntimeClasses(objects)
        self._plugins = Plugins(_mutating(objects, around.rng, classes), (Limits(objects),))
        existing = ExistingPods(around.registry, around.catalog, around.clock)
        self._pod_security = PodSecurity(around.find_namespace, existing)
        self._later_plugins = Plugins((), (OneDefaultPriority(objects), ClaimResizing(objects), classes))
        changers = MutatingPolicies(changing, changing_bindings, judging)
        self._mutating = MutatingWebhooks(self._plugins, changers, mutating, asking)
        self._policies = ValidatingPolicies(policies, bindings, judging)
        self._validating = ValidatingWebhooks(validating, asking)

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:
        """See `Admission.mutate`."""
        await self._lifecycle.mutate(attributes, warnings)
        value = await self._mutating.mutate(attributes, warnings)
        if value is not attributes.value:
            attributes = replace(attributes, value=value)
        return await self._grants.mutate(attributes, warnings)

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """See `Admission.validate`."""
        await self._plugins.validate(attributes, warnings)
        await self._pod_security.validate(attributes, warnings)
        await self._later_plugins.validate(attributes, warnings)
        self._certificates.check(attributes)
        await self._policies.validate(attributes, warnings)
        await self._validating.validate(attributes, warnings)
        await self._quotas.validate(attributes)

    async def close(self) -> None:
        """Closes connections to webhooks; may be called twice."""
        await self._caller.close()


def _mutating(objects: Objects, rng: random.Random, classes: RuntimeClasses) -> Sequence[Mutating]:
    """Those before webhooks, in Kubernetes' order."""
    return (
        DefaultLimits(objects),
        ServiceAccounts(objects, rng),
        NodeTaint(),
        Priorities(objects),
        DefaultTolerations(),
        DefaultStorageClass(objects),
        StorageProtection(),
        classes,
    )
