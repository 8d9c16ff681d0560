"""Who asks, and what they may do: authentication, RBAC, reviews and impersonation."""

from __future__ import annotations

from navarch.cluster.server.pipeline.access.aggregation import stale_aggregates
from navarch.cluster.server.pipeline.access.attributes import attributes_of
from navarch.cluster.server.pipeline.access.authentication import Authenticator
from navarch.cluster.server.pipeline.access.authorization import Authorizer, Decision, UserRules, refusal_of
from navarch.cluster.server.pipeline.access.bootstrap import bootstrap_roles
from navarch.cluster.server.pipeline.access.escalation import check_escalation
from navarch.cluster.server.pipeline.access.impersonation import Impersonated, Impersonation
from navarch.cluster.server.pipeline.access.reviews import REVIEWS, Reviews
from navarch.cluster.server.pipeline.access.signing import InvalidTokenError, SigningKey
from navarch.cluster.server.pipeline.access.token_requests import request_token
from navarch.cluster.server.pipeline.access.tokens import ISSUER, Bound, Objects, Proof, ServiceAccountTokens
from navarch.cluster.server.pipeline.access.users import ANONYMOUS, user_info

__all__ = [
    "ANONYMOUS",
    "ISSUER",
    "REVIEWS",
    "Authenticator",
    "Authorizer",
    "Bound",
    "Decision",
    "Impersonated",
    "Impersonation",
    "InvalidTokenError",
    "Objects",
    "Proof",
    "Reviews",
    "ServiceAccountTokens",
    "SigningKey",
    "UserRules",
    "attributes_of",
    "bootstrap_roles",
    "check_escalation",
    "refusal_of",
    "request_token",
    "stale_aggregates",
    "user_info",
]
