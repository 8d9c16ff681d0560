"""A server of little more than access: enough to ask it what the real one was asked."""

from __future__ import annotations

import itertools
import random
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cluster.access.asking import Answer, Json, Step
from navarch._base.clock import ManualClock
from navarch.api.merge_patch import apply_merge_patch
from navarch.cluster.server.pipeline.authentication.authenticator import CredentialAuthenticator
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.token_requests import request_token
from navarch.cluster.server.pipeline.authentication.tokens import ServiceAccountTokens
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer, attributes_of, forbidden_error
from navarch.cluster.server.pipeline.authorization.escalation import check_escalation
from navarch.cluster.server.pipeline.authorization.impersonation import Impersonator
from navarch.cluster.server.pipeline.authorization.rbac import bootstrap_roles
from navarch.cluster.server.pipeline.authorization.reviews import REVIEWS, Reviews
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo, User, request_info
from navarch.cluster.server.wire.status_errors import StatusError, unauthorized

_KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
ADMIN = User("rig-admin", "rig-admin", ("system:masters",))


class Miniature:
    """Keeps objects in a mapping and answers as the whole server would, as far as access goes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.key = SigningKey.generate()
        self.tokens = {"$admin": "the-token-of-the-admin"}
        self.objects: dict[tuple[str, str, str], Json] = {}
        self._uids = itertools.count(1)
        self.authorizer = RbacAuthorizer()
        for each in bootstrap_roles():
            plural = f"{each['kind'].lower()}s"
            self._put(plural, each["metadata"].get("namespace", ""), each)
        self.accounts = ServiceAccountTokens(self.key, self, self.clock, random.Random(1))
        self.impersonation = Impersonator(self.authorizer)
        self.authenticator = CredentialAuthenticator(self.clock, self.accounts, {"the-token-of-the-admin": ADMIN})
        self.reviews = Reviews(self.authorizer, self.authenticator, self.clock)

    async def get(self, group: str, resource: str, namespace: str, name: str) -> Json | None:
        assert not group, "only objects of the core group prove anything"
        return self.objects.get((resource, namespace, name))

    async def ask(self, step: Step, body: Json | None, token: str) -> Answer:
        headers: dict[str, str] = {}
        bearer = (("Authorization", f"Bearer {token}"),) if token else ()
        for name, value in (*bearer, *step.headers):
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known}\n{value}"
        parts = urlsplit(step.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        request = ApiRequest(method=step.method, path=unquote(parts.path), query=query, headers=headers)
        try:
            return await self._answer(request, body)
        except StatusError as refusal:
            return refusal.code, refusal.status()

    async def _answer(self, request: ApiRequest, body: Json | None) -> Answer:
        info, user = request_info(request), await self.authenticator.authenticate(request)
        if user is None:
            raise unauthorized()
        user = self.impersonation.acting_user(request, user)
        asked = attributes_of(request, info)
        decision = self.authorizer.allows(user, asked)
        if not decision.allowed:
            raise forbidden_error(user, asked, decision.reason)
        if request.method == "GET":
            return 200, {}
        return await self._written(info, user, body or {})

    async def _written(self, info: RequestInfo, user: User, body: Json) -> Answer:
        if kind := REVIEWS.get((info.group, info.resource)):
            return 201, await self.reviews.review(kind, body, user, info.namespace)
        if info.subresource == "token":
            return 201, await request_token(self.accounts, info.namespace, info.name, body)
        if info.verb == "delete":
            del self.objects[info.resource, info.namespace, info.name]
            return 200, {}
        old = self.objects.get((info.resource, info.namespace, info.name)) if info.name else None
        new: Any = body if old is None else apply_merge_patch(body, old)
        check_escalation(self.authorizer, user, info, new, old)
        self._put(info.resource, info.namespace, new)
        return (201 if old is None else 200), new

    def _put(self, resource: str, namespace: str, value: Json) -> None:
        metadata = {"uid": f"00000000-0000-0000-0000-{next(self._uids):012}", **value["metadata"]}
        if namespace:
            metadata["namespace"] = namespace
        stored = {**value, "metadata": metadata}
        old = self.objects.get((resource, namespace, metadata["name"]))
        self.objects[resource, namespace, metadata["name"]] = stored
        if resource in _KINDS:
            self.authorizer.changed(_KINDS[resource], old, stored)
