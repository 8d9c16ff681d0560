"""`navarch registry`: serves a small registry, and shows and deletes what registries have."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from navarch.cli.output import Output, notes, print_json, print_rows
from navarch.cli.registry_options import PlainHttp, registry_options
from navarch.errors import ConfigError
from navarch.oci.reference import DOCKER_HUB, Reference
from navarch.oci.registry import RegistryClient

registry = typer.Typer(no_args_is_help=True, help="Registries of images: serve one, list and delete what is in one.")
_PORT: Final = 5000
_T = TypeVar("_T")


@registry.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="Where the images are stored; a new folder, or one of a registry.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on loopback; 0 takes any free one.")] = _PORT,
) -> None:
    """Serve a registry on loopback until Ctrl-C; what was pushed is there again the next time.

    It has no users and no TLS. Standard output has its address alone.
    """
    asyncio.run(_serve(folder, port))


@registry.command("ls")
def list_repositories(
    host: Annotated[str, typer.Argument(help="The registry, as localhost:5000.")],
    plain_http: PlainHttp = False,
    output: Output = "table",
) -> None:
    """List the repositories of a registry."""
    found = _ask(host, plain_http, lambda client: client.catalog(_host(host)))
    print_rows([{"repository": name} for name in found], output, empty=f"{host} has no repositories")


@registry.command()
def tags(
    repository: Annotated[str, typer.Argument(metavar="HOST/REPOSITORY", help="For example localhost:5000/team/app.")],
    plain_http: PlainHttp = False,
    output: Output = "table",
) -> None:
    """List the tags of a repository."""
    name = Reference.parse(repository)
    found = _ask(name.registry, plain_http, lambda client: client.tags(name))
    print_rows([{"tag": tag} for tag in found], output, empty=f"{name.name} has no tags")


@registry.command("rm")
def remove(
    image: Annotated[
        str,
        typer.Argument(metavar="HOST/REPOSITORY:TAG", help="A tag or, as @sha256:..., an image with all of its tags."),
    ],
    plain_http: PlainHttp = False,
    output: Output = "table",
) -> None:
    """Delete a tag or, by its digest, an image."""
    name = Reference.parse(image)
    if not name.digest and not image.endswith(f":{name.tag}"):
        raise ConfigError(
            f"expected the tag or the digest of an image, got {image!r} without; add :{name.tag} to delete it"
        )
    _ask(name.registry, plain_http, lambda client: client.delete_manifest(name))
    if output == "json":
        print_json({"deleted": str(name)})
    else:
        notes().print(f"{name} is deleted", markup=False)


def _ask(host: str, plain_http: bool, question: Callable[[RegistryClient], Awaitable[_T]]) -> _T:
    async def ask() -> _T:
        async with RegistryClient(registry_options(plain_http=plain_http)) as client:
            return await question(client)

    with notes().status(f"asking {host} ..."):
        return asyncio.run(ask())


def _host(text: str) -> str:
    """Returns the registry of the argument; refuses addresses and names that no registry has."""
    found = Reference.parse(f"{text}/repository").registry
    if found == DOCKER_HUB and "docker.io" not in text:
        raise ConfigError(f"expected a registry as HOST:PORT, got {text!r}; a host without a dot needs its port")
    return found


async def _serve(folder: Path, port: int) -> None:
    from navarch.oci.registry_server import RegistryServerOptions, serve  # noqa: PLC0415 - other commands start sooner

    async with serve(folder, RegistryServerOptions(port=port)) as address:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        typer.echo(address)
        console = notes()
        console.print(f"serving {folder} without TLS, for this machine alone; Ctrl-C stops", markup=False)
        console.print(f"Push: navarch image push {address}/NAME:TAG --plain-http", markup=False)
        console.print(f"List: navarch registry ls {address} --plain-http", markup=False)
        await stop.wait()
    notes().print("stopped", markup=False)
