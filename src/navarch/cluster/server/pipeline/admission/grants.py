"""Nobody writes a role or binding that gives away more than they have."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.authorization.authorizer import Authorizer
from navarch.cluster.server.pipeline.authorization.escalation import check_escalation
from navarch.cluster.server.pipeline.authorization.rbac import RBAC_GROUP
from navarch.cluster.server.wire.request import Json, RequestInfo

__all__ = ["Grants"]

_VERBS: Final = {"CREATE": "create", "UPDATE": "update"}


class Grants:
    """`check_escalation` as a part of admission: after everything that changes the object, before it is validated."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:  # noqa: ARG002 - it has none
        """Changes nothing."""
        if attributes.resource.group == RBAC_GROUP and attributes.value is not None:
            check_escalation(self._authorizer, attributes.user, _info(attributes), attributes.value, attributes.old)
        return attributes.value

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Has nothing to add."""


def _info(attributes: Attributes) -> RequestInfo:
    resource = attributes.resource
    return RequestInfo(
        _VERBS[attributes.operation],
        "",
        group=resource.group,
        version=resource.version,
        namespace=attributes.namespace,
        resource=resource.plural,
        subresource=attributes.subresource,
        name=attributes.name,
    )
