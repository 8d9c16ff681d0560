"""The admission chain: plug-ins, policies and webhooks in the order of kube-apiserver."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.api.json_patch import same_json
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.listers import ObjectLister, ObjectReader
from navarch.cluster.server.pipeline.admission.matching import Equivalents, FindNamespace
from navarch.cluster.server.pipeline.admission.plugins.classes import (
    ClaimResizing,
    DefaultStorageClass,
    OneDefaultPriority,
    PriorityPlugin,
    RuntimeClassPlugin,
)
from navarch.cluster.server.pipeline.admission.plugins.defaults import (
    DefaultTolerations,
    ServiceAccountPlugin,
    StorageInUseProtection,
    TaintNewNodes,
)
from navarch.cluster.server.pipeline.admission.plugins.guards import (
    CertificatePlugin,
    EscalationCheckPlugin,
    NamespaceLifecycle,
)
from navarch.cluster.server.pipeline.admission.plugins.limits import LimitRanger, LimitRangerDefaults
from navarch.cluster.server.pipeline.admission.plugins.plugin import PluginTable
from navarch.cluster.server.pipeline.admission.plugins.quotas import ResourceQuotas
from navarch.cluster.server.pipeline.admission.pod_security.admission import ExistingPods, PodSecurity
from navarch.cluster.server.pipeline.admission.policies.mutating import MutatingPolicies
from navarch.cluster.server.pipeline.admission.policies.policy import PolicyDeps
from navarch.cluster.server.pipeline.admission.policies.validating import ValidatingPolicies
from navarch.cluster.server.pipeline.admission.webhooks.webhook import (
    MutatingWebhooks,
    ValidatingWebhooks,
    WebhookCalls,
    WebhookDeps,
    service_addresses,
)
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.webhook_client import LocalWebhook, ResolveService, WebhookClient


class AdmissionDeps(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the server that admission needs. `resolve_service` finds webhooks behind services; by default they are
    where kube-apiserver looks for them: at the cluster IP, or at the name of an ExternalName service.
    """

    registry: Registry
    catalog: Catalog
    authorizer: RbacAuthorizer
    find_namespace: FindNamespace
    clock: Clock
    rng: random.Random
    resolve_service: ResolveService | None = None
    local_webhooks: Mapping[str, LocalWebhook] | None = None


class AdmissionChain:
    """Everything between authorization and storage, in the order of kube-apiserver.

    Mutation: NamespaceLifecycle, mutating plug-ins, mutating policies, mutating webhooks; if a policy or a webhook changed
    the object, the plug-ins run again, and with them the policies and webhooks that ask for reinvocation; then the RBAC
    escalation check. Validation: plug-ins and Pod Security, policies, webhooks, and quotas last, so that only admitted
    objects are charged.

    `followed` maps storage prefixes to the callbacks that need their changes. Call `close` at the end.
    """

    def __init__(self, around: AdmissionDeps) -> None:
        objects = ObjectReader(around.registry, around.catalog)
        equivalents = Equivalents(around.catalog)
        self._caller = WebhookClient(
            around.clock, around.resolve_service or service_addresses(objects), around.local_webhooks
        )
        asking = WebhookDeps(self._caller, equivalents, around.find_namespace, around.authorizer, around.rng)
        judging = PolicyDeps(objects, equivalents, around.find_namespace, around.authorizer)
        mutating_hooks, validating_hooks = ObjectLister(), ObjectLister()
        mutating_policies, mutating_bindings, validating_policies, validating_bindings = (
            ObjectLister() for _ in range(4)
        )
        runtime_classes = RuntimeClassPlugin(objects)
        existing = ExistingPods(around.registry, around.catalog, around.clock)

        self._lifecycle = NamespaceLifecycle(around.find_namespace)
        self._mutating_plugins = PluginTable(
            (
                LimitRangerDefaults(objects),
                ServiceAccountPlugin(objects, around.rng),
                TaintNewNodes(),
                PriorityPlugin(objects),
                DefaultTolerations(),
                DefaultStorageClass(objects),
                StorageInUseProtection(),
                runtime_classes,
            ),
            (),
        )
        self._mutating_policies = MutatingPolicies(mutating_policies, mutating_bindings, judging)
        self._mutating_webhooks = MutatingWebhooks(mutating_hooks, asking)
        self._grants = EscalationCheckPlugin(around.authorizer)
        self._limits = PluginTable((), (LimitRanger(objects),))
        self._pod_security = PodSecurity(around.find_namespace, existing)
        self._class_plugins = PluginTable((), (OneDefaultPriority(objects), ClaimResizing(objects), runtime_classes))
        self._certificates = CertificatePlugin(around.authorizer)
        self._validating_policies = ValidatingPolicies(validating_policies, validating_bindings, judging)
        self._validating_webhooks = ValidatingWebhooks(validating_hooks, asking)
        self._quotas = ResourceQuotas(around.registry, around.catalog)
        self.followed: Mapping[str, Callable[[Json | None, Json | None], None]] = {
            "/registry/mutatingwebhookconfigurations/": mutating_hooks.changed,
            "/registry/validatingwebhookconfigurations/": validating_hooks.changed,
            "/registry/mutatingadmissionpolicies/": mutating_policies.changed,
            "/registry/mutatingadmissionpolicybindings/": mutating_bindings.changed,
            "/registry/validatingadmissionpolicies/": validating_policies.changed,
            "/registry/validatingadmissionpolicybindings/": validating_bindings.changed,
            "/registry/resourcequotas/": self._quotas.changed,
        }

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:
        """See `Admission.mutate`."""
        await self._lifecycle.check(attributes)
        attributes = await self._completed(attributes)
        calls = await self._mutating_webhooks.calls(attributes)
        changed = await self._mutating_policies.mutate(attributes, is_again=False)
        changed = await self._mutating_webhooks.mutate(changed, calls, warnings, is_reinvocation=False)
        if changed.value is not attributes.value:
            changed = await self._reinvoked(changed, calls, warnings)
        return await self._grants.mutate(changed, warnings)

    async def _completed(self, attributes: Attributes) -> Attributes:
        value = await self._mutating_plugins.mutate(attributes)
        return attributes if value is attributes.value else replace(attributes, value=value)

    async def _reinvoked(self, attributes: Attributes, calls: WebhookCalls, warnings: Warnings) -> Attributes:
        changed = await self._mutating_policies.mutate(await self._completed(attributes), is_again=True)
        if changed.value is not attributes.value and not same_json(changed.value, attributes.value):
            calls.object_changed()
        return await self._mutating_webhooks.mutate(changed, calls, warnings, is_reinvocation=True)

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """See `Admission.validate`."""
        await self._limits.validate(attributes)
        await self._pod_security.validate(attributes, warnings)
        await self._class_plugins.validate(attributes)
        self._certificates.check(attributes)
        await self._validating_policies.validate(attributes, warnings)
        await self._validating_webhooks.validate(attributes, warnings)
        await self._quotas.validate(attributes)

    async def close(self) -> None:
        """Closes connections to webhooks; may be called twice."""
        await self._caller.close()
