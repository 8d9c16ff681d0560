"""Names as Kubernetes allows them."""

from __future__ import annotations

import re

__all__ = ["is_dns_label", "is_dns_subdomain", "is_resource_name"]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_RESOURCE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")


def is_dns_label(name: str) -> bool:
    """RFC 1123: lower case letters, digits and dashes, at most 63 characters."""
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def is_resource_name(name: str) -> bool:
    """RFC 1035: as `is_dns_label`, but it starts with a letter."""
    return len(name) <= 63 and _RESOURCE.fullmatch(name) is not None


def is_dns_subdomain(name: str) -> bool:
    """Labels with dots between them, at most 253 characters.

    >>> is_dns_subdomain("cache.example.com"), is_dns_subdomain("Cache.example.com")
    (True, False)
    """
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None
