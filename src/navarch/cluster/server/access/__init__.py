"""Who asks, and what they may do: authentication, RBAC, reviews and impersonation."""

from __future__ import annotations

from navarch.cluster.server.access.aggregation import stale_aggregates
from navarch.cluster.server.access.authentication import Authenticator
from navarch.cluster.server.access.authorization import Authorizer, Decision, refusal_of
from navarch.cluster.server.access.bootstrap import bootstrap_roles
from navarch.cluster.server.access.signing import SigningKey
from navarch.cluster.server.access.tokens import Objects, ServiceAccountTokens

__all__ = [
    "Authenticator",
    "Authorizer",
    "Decision",
    "Objects",
    "ServiceAccountTokens",
    "SigningKey",
    "bootstrap_roles",
    "refusal_of",
    "stale_aggregates",
]
