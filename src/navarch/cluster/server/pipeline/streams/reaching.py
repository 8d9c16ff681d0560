"""What must be so before anything is carried to a node: somebody who may, and a node that answers."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.pipeline.authorization.authorizer import attributes_of
from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.pipeline.streams.nodes import Nodes
from navarch.cluster.server.pipeline.streams.places import host_of
from navarch.cluster.server.pipeline.streams.upgrades import is_upgrade
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, forbidden
from navarch.cluster.streams import PodStreams

__all__ = ["Reaching"]


class Authorizer(Protocol):
    """Who may what."""

    def why_not(self, user: User, info: RequestInfo) -> str | None:
        """None if it is allowed, else why it is not."""
        ...


class Reaching(msgspec.Struct, frozen=True):
    """The way to the nodes of a cluster."""

    nodes: Nodes
    authorizer: Authorizer

    def check_create(self, call: Call) -> None:
        """Refuses with 403 whoever may not `create`: a WebSocket is opened by a GET, but it is no reading."""
        info = replace(attributes_of(call.request, call.info), verb="create")
        if self.authorizer.why_not(call.user, info) is not None:
            raise forbidden(call.resource.group, call.resource.plural, call.info.name, "")

    async def node(self, call: Call, pod: Json) -> PodStreams:
        """The node of a pod; refuses if it has none, if it does not answer, or if nobody wants to talk with it."""
        host = await host_of(call, pod)
        if host is None:
            raise bad_request(f"pod {call.info.name} does not have a host assigned")
        if not is_upgrade(call.request):
            raise bad_request("Upgrade request required")
        found = self.nodes.find(host.name)
        if found is None:
            raise StatusError(500, "", f"error dialing backend: {host.unreachable}")
        return found
