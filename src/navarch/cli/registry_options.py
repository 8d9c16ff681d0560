"""How commands talk to registries: with the user's credentials and proxies."""

from __future__ import annotations

from typing import Annotated

import typer

from navarch.client.config.environment import environment_proxy
from navarch.oci.registry import RegistryOptions

PlainHttp = Annotated[bool, typer.Option("--plain-http", help="Talk to the registry without TLS.")]


def registry_options(*, plain_http: bool) -> RegistryOptions:
    """Returns options with what `docker login` has stored, and the proxies of the environment."""
    return RegistryOptions(plain_http=plain_http, proxy=environment_proxy)
