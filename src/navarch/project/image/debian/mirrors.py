"""Mirrors and proxies: from options, else from apt and the environment, else Debian's own."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from yarl import URL

from navarch.errors import ImageError
from navarch.project.image.debian.apt_configuration import AptConfiguration, AptSource

DEBIAN: Final = "https://deb.debian.org/debian"
DEBIAN_SECURITY: Final = "https://deb.debian.org/debian-security"
NO_MIRROR: Final = "none"
_DEBIAN_SUITE: Final = re.compile(
    r"(?:oldoldstable|oldstable|stable|testing|buster|bullseye|bookworm|trixie|forky|duke)(?P<pocket>-updates|-security|/updates)?"
)
_ADDRESS: Final = re.compile(r"https?://[^/?#\s]+[^?#\s]*")
_SCHEMES: Final = ("http", "https")


class Mirrors(msgspec.Struct, frozen=True, kw_only=True):
    """Where packages come from: two addresses, each with folders `dists` and `pool` below it."""

    main: str = DEBIAN
    security: str | None = DEBIAN_SECURITY
    """The mirror of security updates; None if the main mirror has all that is wanted."""

    def __post_init__(self) -> None:
        for mirror in (self.main, self.security):
            if mirror is not None and _ADDRESS.fullmatch(mirror) is None:
                raise ImageError(f"expected a mirror such as {DEBIAN}, got {mirror!r}")


def choose_mirrors(mirror: str | None, security_mirror: str | None, apt: AptConfiguration) -> Mirrors:
    """Returns the mirrors of the options, else those of apt, else Debian's own.

    apt's mirror of any Debian release is taken for all of them: a mirror has every suite. `none` as the security mirror
    leaves out security updates.
    """
    main = mirror or _mirror_of_apt(apt.sources, security=False) or DEBIAN
    security = security_mirror or _mirror_of_apt(apt.sources, security=True) or DEBIAN_SECURITY
    return Mirrors(main=main.rstrip("/"), security=None if security == NO_MIRROR else security.rstrip("/"))


def _mirror_of_apt(sources: Iterable[AptSource], *, security: bool) -> str | None:
    """Returns the mirror of Debian itself among apt's sources; other archives are made for Debian's suites, too."""
    found = []
    for source in sources:
        suite = _DEBIAN_SUITE.fullmatch(source.suite.strip("/"))
        if suite is None or "main" not in source.components or _ADDRESS.fullmatch(source.uri) is None:
            continue
        if (suite["pocket"] in {"-security", "/updates"}) == security:
            found.append(source.uri)
    return next((uri for uri in found if "debian" in URL(uri).path), found[0] if found else None)


class Proxies(msgspec.Struct, frozen=True, kw_only=True):
    """Through which proxy addresses are reached."""

    option: str | None = None
    apt: AptConfiguration = AptConfiguration()
    environment: Mapping[str, str] = {}

    def proxy_for(self, url: URL) -> str | None:
        """Returns the proxy for the address: the option's, else apt's, else the environment's; None for none.

        `no_proxy` excepts hosts from the latter two, as in apt. Raises `ImageError` for a proxy that does not speak HTTP.
        """
        found = self.option or self._configured(url.scheme, url.host or "")
        if not found or found.lower() == "direct":
            return None
        proxy = URL(found if "://" in found else f"http://{found}")
        if proxy.scheme not in _SCHEMES or not proxy.host:
            raise ImageError(f"expected an HTTP proxy such as http://proxy.example.com:3128, got {shown(found)}")
        return str(proxy)

    def _configured(self, scheme: str, host: str) -> str | None:
        """Small letters win in the environment, and `HTTP_PROXY` is not read: a request to a CGI program can set it."""
        if _is_excepted(host, self.environment.get("no_proxy") or self.environment.get("NO_PROXY") or ""):
            return None
        names = (f"{scheme}_proxy", *(["HTTPS_PROXY"] if scheme == "https" else []), "all_proxy", "ALL_PROXY")
        of_environment = (self.environment[name] for name in names if self.environment.get(name))
        return self.apt.proxy(scheme, host) or next(of_environment, None)


def _is_excepted(host: str, excepted: str) -> bool:
    """Returns whether `no_proxy` names the host, a domain that it is in, or a network that its address is in."""
    for entry in filter(None, (each.strip().lower() for each in excepted.split(","))):
        name = entry.lstrip("*").lstrip(".")
        if entry == "*" or host.lower() == name or (name and host.lower().endswith(f".{name}")):
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False


def shown(address: str) -> str:
    """Returns the address for messages, without a password that it may have."""
    found = URL(address)
    return str(found.with_user(None)) if found.absolute else address.rpartition("@")[2]
