"""`Settings`: the table `[tool.navarch]` of a project's `pyproject.toml`, with `[tool.navarch.build]` in it."""

from __future__ import annotations

import tomllib
from typing import Any, Literal

import msgspec

from navarch.errors import ConfigError

Certificates = Literal["self", "cert-manager"]


class BuildSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What `navarch image` builds the operator's image from."""

    base: str = "debian:trixie"
    """A release of Debian, an image in a registry, or `oci:PATH`, an OCI layout."""
    platforms: tuple[str, ...] = ("linux/amd64", "linux/arm64")
    """The platforms of the image."""
    packages: tuple[str, ...] = ()
    """Debian packages beside Python; their maintainer scripts do not run."""
    extras: tuple[str, ...] = ()
    """Extras of the project whose dependencies the image has."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How the operator of a project is deployed; everything has a default."""

    package: str = ""
    """The Python package below `src`; by default the project's name with underscores."""
    image: str = "controller:latest"
    """The image of the Deployment."""
    namespace: str = ""
    """The namespace of the operator; by default the project's name and `-system`."""
    replicas: int = 2
    """How many replicas run; one of them leads."""
    certificates: Certificates = "self"
    """Who issues the certificates of webhooks: the operator itself, or cert-manager."""
    watch_namespaces: tuple[str, ...] = ()
    """The namespaces of the operator; by default all or, in a project with `namespaced`, its own."""
    prometheus: bool = False
    """Whether the installation has the ServiceMonitor and the PrometheusRule; their CRDs must be in the cluster."""
    environment: dict[str, str] = {}
    """Variables of the operator's container; the code is loaded with them, so that the manifests follow from them."""
    network_policy: bool = False
    """Whether the installation has the NetworkPolicies: metrics for namespaces with the label `metrics: enabled`."""
    build: BuildSettings = BuildSettings()
    """What the image is built from."""

    @staticmethod
    def parse(text: str, where: str) -> Settings:
        """Reads the table from the text of `pyproject.toml`; a missing table has all defaults. Raises `ConfigError`."""
        try:
            found: Any = tomllib.loads(text).get("tool", {}).get("navarch", {})
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{where}: expected TOML, got something else: {error}") from None
        try:
            return msgspec.convert(found, Settings)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: [tool.navarch]: {error}") from None
