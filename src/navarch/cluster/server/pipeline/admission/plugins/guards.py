"""Plug-ins that only refuse: NamespaceLifecycle, rights on CertificateSigningRequests, RBAC escalation."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Final

from navarch.api.strconv import go_quoted
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.authorization.escalation import check_escalation
from navarch.cluster.server.pipeline.authorization.rbac import RBAC_GROUP
from navarch.cluster.server.wire.request import Json, RequestInfo
from navarch.cluster.server.wire.status_errors import StatusError, forbidden, not_found

FindNamespace = Callable[[str], Awaitable[Json | None]]
"""The namespace of that name; None if there is none."""
_WRITES: Final = frozenset({"CREATE", "UPDATE"})
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Refuses writes to missing and terminating namespaces, and the deletion of Kubernetes' own namespaces."""

    def __init__(self, find: FindNamespace) -> None:
        self._find = find

    async def check(self, attributes: Attributes) -> None:
        """Raises StatusError. The chain calls it before anything else, so that its refusal is the one that a client sees."""
        if _is_namespace(attributes):
            _refuse_end_of_immortal(attributes)
        elif attributes.namespace and attributes.operation in _WRITES and not _is_review(attributes):
            await self._refuse_misplaced(attributes)

    async def _refuse_misplaced(self, attributes: Attributes) -> None:
        namespace = await self._find(attributes.namespace)
        if namespace is None:
            raise not_found("", "namespaces", attributes.namespace)
        if attributes.operation == "CREATE" and (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(attributes)


def _is_namespace(attributes: Attributes) -> bool:
    return attributes.resource.plural == "namespaces" and not attributes.resource.group


def _is_review(attributes: Attributes) -> bool:
    resource = attributes.resource
    return resource.plural == "localsubjectaccessreviews" and resource.group == "authorization.k8s.io"


def _refuse_end_of_immortal(attributes: Attributes) -> None:
    if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
        raise forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")


def _terminating(attributes: Attributes) -> StatusError:
    resource, namespace = attributes.resource, attributes.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refusal = forbidden(resource.group, resource.plural, _said_name(attributes), why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refusal.details = {**(refusal.details or {}), "causes": [cause]}
    return refusal


def _said_name(attributes: Attributes) -> str:
    """A name that the server was to make up has not been made up yet."""
    metadata = (attributes.value or {}).get("metadata") or {}
    return str(metadata.get("generateName") or attributes.name)


_GROUP: Final = "certificates.k8s.io"
_REQUESTS: Final = "certificatesigningrequests"
_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


class CertificatePlugin:
    """Whoever approves or signs a request must be allowed to for its signer, beside the request itself."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def check(self, attributes: Attributes) -> None:
        """Raises StatusError."""
        resource, value, old = attributes.resource, attributes.value, attributes.old
        if resource.plural != _REQUESTS or resource.group != _GROUP or value is None:
            return
        if old is None:
            _check_subject(attributes, value)
        elif attributes.subresource == "approval":
            self._check_right(attributes, old, "approve")
        elif attributes.subresource == "status" and _issues(value, old):
            self._check_right(attributes, old, "sign")

    def _check_right(self, attributes: Attributes, request: Json, verb: str) -> None:
        signer = request["spec"]["signerName"]
        names = (signer, f"{signer.partition('/')[0]}/*")
        asked = (RequestInfo(verb, "", _GROUP, "*", "", "signers", "", name) for name in names)
        if all(self._authorizer.why_not(attributes.user, each) is not None for each in asked):
            raise _forbidden(attributes, f"user not permitted to {verb} requests with signerName {go_quoted(signer)}")


def _issues(value: Json, old: Json) -> bool:
    """Tells whether an update issues a certificate or fails the request."""
    now, before = value.get("status") or {}, old.get("status") or {}
    return now.get("certificate") != before.get("certificate") or _failures(now) != _failures(before)


def _failures(status: Json) -> list[Json]:
    return [each for each in status.get("conditions") or () if each["type"] == "Failed"]


def _check_subject(attributes: Attributes, value: Json) -> None:
    """Refuses a client certificate for the group system:masters."""
    if value["spec"]["signerName"] != _CLIENT_SIGNER:
        return
    from cryptography import x509  # noqa: PLC0415 - few ask for certificates

    try:
        request = x509.load_pem_x509_csr(b64decode(value["spec"]["request"]))
    except ValueError as error:
        raise _forbidden(attributes, f"failed to parse CSR: {error}") from error
    groups = request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    if any(group.value == _MASTERS for group in groups):
        raise _forbidden(attributes, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _forbidden(attributes: Attributes, why: str) -> StatusError:
    return forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, why)


_VERBS: Final = {"CREATE": "create", "UPDATE": "update"}


class EscalationCheckPlugin:
    """`check_escalation` as a part of admission: after everything that changes the object, before it is validated."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
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
