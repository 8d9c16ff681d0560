"""`navarch cluster image list | add | remove`: which programs containers can name as their images."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from navarch.cli.cluster_folders import Name, existing
from navarch.cli.output import Output, notes, print_rows
from navarch.cluster.nodes.images import Image, ImageReference, Images
from navarch.errors import ConfigError

__all__ = ["image"]

image = typer.Typer(no_args_is_help=True, help="The images of a cluster: names for programs of this machine.")

ImageName = Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="As containers name it.")]


@image.command(name="list")
def list_(name: Name = "default", output: Output = "table") -> None:
    """Show every image: those that were added, and those that this machine has anyway."""
    images = Images.load(existing(name).images)
    rows = [_row(each, is_added=each not in images.installed) for each in images]
    print_rows(rows, output, empty="there are no images")


@image.command()
def add(
    image: ImageName,
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="-- PROGRAM [ARGS]",
            help="What runs; the container's own arguments come behind. $(POD_IP), $(POD_NAME) and $(POD_NAMESPACE) "
            "in arguments are the pod's.",
        ),
    ],
    name: Name = "default",
    env: Annotated[list[str] | None, typer.Option(help="A variable, as NAME=VALUE; may be given again.")] = None,
) -> None:
    """Let containers name a program of this machine as their image. A cluster that runs knows it at once."""
    reference = ImageReference.of(image)
    added = Image(
        name=reference.repository,
        version=reference.tag.removeprefix("v"),
        argv=(_found(program[0]),),
        always=tuple(program[1:]),
        env=dict(map(_variable, env or ())),
    )
    Images.load(existing(name).images).add(added)
    notes().print(f"image {added.identity!r} is {' '.join((*added.argv, *added.always))}", markup=False)


@image.command()
def remove(image: ImageName, name: Name = "default") -> None:
    """Forget an image that was added; containers that run it go on."""
    reference = ImageReference.of(image)
    identity = ":".join(filter(None, (reference.repository, reference.tag.removeprefix("v"))))
    Images.load(existing(name).images).remove(identity)
    notes().print(f"image {identity!r} is forgotten", markup=False)


def _row(image: Image, *, is_added: bool) -> dict[str, str]:
    return {
        "image": image.identity,
        "program": " ".join((*image.argv, *image.always)),
        "from": "added" if is_added else "machine",
    }


def _found(program: str) -> str:
    """The program's whole path: the cluster runs in another folder, with another PATH."""
    found = shutil.which(program)
    if found is None:
        raise ConfigError(f"expected a program that can be run, got {program!r}: there is no such one on the PATH")
    return str(Path(found).absolute())


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"expected a variable as NAME=VALUE, got {text!r}")
    return name, value
