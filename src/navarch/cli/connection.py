"""Connects a command to the cluster that kubectl would use, and says what to do if there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from navarch.cli.output import notes
from navarch.errors import ConfigError, TlsError, TransportError

if TYPE_CHECKING:
    from navarch.client import Client, Config

Kubeconfig = Annotated[Path | None, typer.Option(help="The kubeconfig; by default the one of kubectl.")]
KubeContext = Annotated[str | None, typer.Option("--context", help="The context of the kubeconfig.")]
OperatorNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAME", help="The namespace of the operator; by default the project's."),
]
_SECONDS: Final = 5.0
"""How long the first request may take, with its retries; later ones have the time limit of the kubeconfig."""
_REMEDY: Final = 'start a cluster: eval "$(navarch cluster up)", or name another one: --kubeconfig FILE, --context NAME'


def load_config(kubeconfig: Path | None, context: str | None) -> Config:
    """Returns the configuration of the cluster. Raises `ConfigError` with the flags that name another one."""
    from navarch.client import load  # noqa: PLC0415 - commands without requests start sooner

    try:
        return load(kubeconfig, context=context)
    except ConfigError as error:
        raise ConfigError(f"{str(error).rstrip('.')}; {_REMEDY}") from None


@asynccontextmanager
async def connected(
    kubeconfig: Path | None, context: str | None, show: Callable[[str], None] | None = None
) -> AsyncIterator[Client]:
    """Connects to the cluster, and shows its address meanwhile: by `show`, if the command has a status line of its own.

    Raises `ConfigError` if the cluster does not answer within five seconds.
    """
    from navarch.client import connect  # noqa: PLC0415 - as above

    config = load_config(kubeconfig, context)
    async with connect(config) as client:
        try:
            with _shown(f"connecting to {config.server} ...", show):
                await client.using(timeout=_SECONDS).discovery.version()
        except TlsError:
            raise  # it names its own remedy
        except TransportError as error:
            raise ConfigError(f"{config.server} ({config.origin}) does not answer: {error}; {_REMEDY}") from None
        yield client


def _shown(text: str, show: Callable[[str], None] | None) -> AbstractContextManager[object]:
    if show is None:
        return notes().status(text)
    show(text)
    return nullcontext()
