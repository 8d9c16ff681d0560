"""The paths and methods of a resource."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, method_not_allowed, not_found

_ACROSS: Final[dict[str, tuple[str, ...]]] = {"GET": ("list", "watch")}
_COLLECTION: Final[dict[str, tuple[str, ...]]] = {
    "GET": ("list", "watch"),
    "POST": ("create",),
    "DELETE": ("deletecollection",),
}
_ITEM: Final[dict[str, tuple[str, ...]]] = {
    "GET": ("get",),
    "PUT": ("update",),
    "PATCH": ("patch",),
    "DELETE": ("delete",),
}
_PASSED_ON: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS"), ("get",)),
    "PUT": ("update",),
    "PATCH": ("patch",),
    "POST": ("create",),
    "DELETE": ("delete",),
}
"""What is passed on may be asked in any way."""
_SUBRESOURCE: Final[dict[str, tuple[str, ...]]] = {
    "GET": ("get",),
    "PUT": ("update",),
    "PATCH": ("patch",),
    "POST": ("create",),
    "DELETE": ("delete",),
}


def no_such_resource() -> StatusError:
    """404 for a path below a known group that leads nowhere."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def has_route(request: ApiRequest, info: RequestInfo, resource: ResourceType) -> bool:
    """Whether the resource has such a path: in its scope, and with something to do there."""
    if "//" in _own_path(request, info):
        return False
    if not _is_in_scope(info, resource):
        return False
    if info.subresource:
        return info.subresource in resource.subresources
    methods = _methods(info, resource)
    return any(verb in resource.verbs for verbs in methods.values() for verb in verbs)


def _own_path(request: ApiRequest, info: RequestInfo) -> str:
    """Without what is not for this server."""
    if info.subresource != "proxy":
        return request.path.rstrip("/")
    before, proxy, _ = request.path.partition("/proxy/")
    return before + proxy


def refuse_unknown_part(info: RequestInfo, resource: ResourceType) -> None:
    """404 for a subresource that a custom kind does not have: it is the object that is not found then."""
    if resource.is_custom and info.subresource and info.subresource not in resource.subresources:
        raise not_found(resource.group, resource.plural, info.name)


def check_route(request: ApiRequest, info: RequestInfo, resource: ResourceType) -> None:
    """Refuses with 405 a method that the path does not have."""
    verbs = resource.subresources[info.subresource].verbs if info.subresource else resource.verbs
    if not any(verb in verbs for verb in _methods(info, resource).get(request.method, ())):
        raise method_not_allowed()
    if fault := _name_fault(info.name):
        raise bad_request(f'Name parameter invalid: "{info.name}": {fault}')


def _name_fault(name: str) -> str:
    """Why a name cannot be part of a path."""
    if name in {".", ".."}:
        return f"may not be '{name}'"
    return "may not contain '%'" if "%" in name else ""


def _is_in_scope(info: RequestInfo, resource: ResourceType) -> bool:
    if resource.namespaced:
        return bool(info.namespace or not info.name)
    if not info.namespace:
        return True
    path = f"/api/{info.version}/{resource.plural}/{info.name}"
    is_own = resource.is_own_namespace and info.namespace == info.name
    return is_own and not info.path.startswith(f"{path}/{resource.plural}/")


def _methods(info: RequestInfo, resource: ResourceType) -> dict[str, tuple[str, ...]]:
    if info.subresource:
        return _PASSED_ON if info.subresource == "proxy" else _SUBRESOURCE
    if info.name:
        return _ITEM
    return _COLLECTION if info.namespace or not resource.namespaced else _ACROSS
