"""How commands talk to registries: with the user's credentials and proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from navarch.oci.registry import RegistryOptions

PlainHttp = Annotated[bool, typer.Option("--plain-http", help="Talk to the registry without TLS.")]


def registry_options(*, plain_http: bool) -> RegistryOptions:
    """Returns options with what `docker login` has stored, and the proxies of the environment."""
    from navarch.client.config.environment import environment_proxy  # noqa: PLC0415 - commands without requests start sooner
    from navarch.oci.registry import RegistryOptions  # noqa: PLC0415 - as above

    return RegistryOptions(plain_http=plain_http, proxy=environment_proxy)
