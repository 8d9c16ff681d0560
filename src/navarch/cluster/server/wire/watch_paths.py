"""Watches as they were asked for before `?watch=true`: `/api/v1/watch/namespaces/default/pods/web`."""

from __future__ import annotations

from msgspec.structs import replace

from navarch.cluster.server.wire.request import ApiRequest

__all__ = ["as_watch"]


def as_watch(request: ApiRequest) -> ApiRequest:
    """The same request with the path of today, if it has one of those of old.

    >>> asked = as_watch(ApiRequest(method="GET", path="/apis/apps/v1/watch/namespaces/a/deployments/web"))
    >>> asked.path, asked.query
    ('/apis/apps/v1/namespaces/a/deployments', {'watch': ['true'], 'fieldSelector': ['metadata.name=web']})
    """
    if "/watch/" not in request.path or request.method != "GET":
        return request
    root, _, rest = request.path.partition("/watch/")
    depth = {"api": 2, "apis": 3}.get(request.path.split("/")[1], 0)
    if root.count("/") != depth:
        return request
    collection, name = _parts(rest.rstrip("/"))
    query = {**request.query, "watch": ["true"]}
    if name:
        selectors = [f"metadata.name={name}", *request.query.get("fieldSelector", ())]
        query["fieldSelector"] = [",".join(selectors)]
    return replace(request, path=f"{root}/{collection}", query=query)


def _parts(rest: str) -> tuple[str, str]:
    """The collection and the name in it, which may be missing."""
    parts = rest.split("/")
    length = 3 if parts[0] == "namespaces" and len(parts) > 2 else 1
    return "/".join(parts[:length]), "/".join(parts[length:])
