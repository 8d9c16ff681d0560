"""Updates the status of ValidatingAdmissionPolicies with the warnings of type checking."""

from __future__ import annotations

from typing import Final

from navarch.controller.context import Context
from navarch.k8s.admissionregistration.v1 import (
    TypeChecking,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyStatus,
)
from navarch.operator import Operator

_MANAGER: Final = "validatingadmissionpolicy-status"


def declare_policy_status(operator: Operator) -> None:
    """Adds the controller. It looks at a policy once for each generation, as Kubernetes' own does."""

    @operator.controller(ValidatingAdmissionPolicy, name=_MANAGER)
    async def check(policy: ValidatingAdmissionPolicy, ctx: Context) -> None:
        from navarch.cluster.controllers.policy.type_checking import warnings  # noqa: PLC0415 - few clusters have policies

        generation = policy.metadata.generation or 0
        if generation <= (policy.status.observed_generation or 0):
            return
        found = await warnings(policy, ctx.client)
        desired = ValidatingAdmissionPolicy(name=policy.name)
        desired.status = ValidatingAdmissionPolicyStatus(
            observed_generation=generation,
            type_checking=TypeChecking(expression_warnings=found) if found else TypeChecking(),
        )
        await ctx.client.using(manager=_MANAGER).apply(desired, force=True, subresource="status")
