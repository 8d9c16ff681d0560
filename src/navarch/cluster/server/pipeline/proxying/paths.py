"""Which part of a path is for whom: up to `proxy` for the API server, the rest for what stands behind it."""

from __future__ import annotations

import posixpath
from typing import Final
from urllib.parse import quote

import msgspec

__all__ = ["Way", "escaped", "joined", "way_of"]

_PLAIN: Final = "/$&+,:;=@~-._"
"""What Go leaves as it is in a path."""
_PARTS: Final = {True: 7, False: 5}
"""How many parts of a path come before those for the place behind, in a namespace and in none."""


class Way(msgspec.Struct, frozen=True):
    """A request's path: `prefix` is where the place behind begins for the client, `path` what is asked of it."""

    whole: str
    prefix: str
    path: str


def way_of(path: str, *, namespaced: bool) -> Way:
    """Takes a path apart. What is asked of the place behind is in order, as a shell would have it.

    >>> way_of("/api/v1/nodes/one/proxy/a//../b/", namespaced=False).path
    '/b/'
    >>> way_of("/api/v1/namespaces/x/pods/web/proxy", namespaced=True)
    Way(whole='/api/v1/namespaces/x/pods/web/proxy', prefix='/api/v1/namespaces/x/pods/web/proxy', path='')
    """
    rest = "/".join(path.strip("/").split("/")[_PARTS[namespaced] :])
    behind = joined("", rest) if rest else ""
    if path.endswith("/") and not behind.endswith("/"):
        behind += "/"
    return Way(path, path.removesuffix(behind), behind)


def joined(base: str, path: str) -> str:
    """A path below another, without anything that leads up or nowhere.

    >>> joined("/base", "../a/./b"), joined("", "/")
    ('/a/b', '/')
    """
    return "/" + posixpath.normpath(f"/{base}/{path}").lstrip("/")


def escaped(path: str) -> str:
    """A path as Go writes it.

    >>> escaped("/a b/(ä):1")
    '/a%20b/%28%C3%A4%29:1'
    """
    return quote(path, safe=_PLAIN)
