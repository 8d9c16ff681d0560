"""authentication/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime

from navarch.api import Model, Object, field

__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]


class BoundObjectReference(Model):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None


class UserInfo(Model):
    extra: dict[str, list[str]] | None = None
    groups: list[str] | None = None
    uid: str | None = None
    username: str | None = None


class SelfSubjectReviewStatus(Model):
    user_info: UserInfo | None = None


class SelfSubjectReview(
    Object,
    group="authentication.k8s.io",
    version="v1",
    plural="selfsubjectreviews",
    namespaced=False,
    has_status=False,
):
    status: SelfSubjectReviewStatus = field(default_factory=SelfSubjectReviewStatus)


class TokenRequestSpec(Model):
    audiences: list[str] | None = None
    bound_object_ref: BoundObjectReference | None = None
    expiration_seconds: int | None = None


class TokenRequestStatus(Model, sensitive=("token",)):
    expiration_timestamp: datetime | None = None
    token: str | None = None


class TokenRequest(
    Object,
    group="authentication.k8s.io",
    version="v1",
    plural="token",
    singular="token",
    has_status=False,
):
    spec: TokenRequestSpec = field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = field(default_factory=TokenRequestStatus)


class TokenReviewSpec(Model, sensitive=("token",)):
    token: str
    audiences: list[str] | None = None


class TokenReviewStatus(Model):
    audiences: list[str] | None = None
    authenticated: bool | None = None
    error: str | None = None
    user: UserInfo | None = None


class TokenReview(
    Object,
    group="authentication.k8s.io",
    version="v1",
    plural="tokenreviews",
    namespaced=False,
    has_status=False,
):
    spec: TokenReviewSpec
    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)
