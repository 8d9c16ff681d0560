"""`navarch cluster image list | add | remove`: the programs that containers can name as their images."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from navarch.cli.cluster_folders import Name, existing
from navarch.cli.output import Output, notes, print_rows
from navarch.cluster.nodes.images import Image, ImageReference, Images
from navarch.errors import ConfigError

image = typer.Typer(no_args_is_help=True, help="The images of a cluster: names for programs, and loaded images.")

ImageName = Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="The image as containers name it.")]


@image.command(name="list")
def list_(name: Name = "default", output: Output = "table") -> None:
    """Show every image: the loaded and added ones, and the ones found on this machine."""
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
            help="The program; the container's args are appended. $(POD_IP), $(POD_NAME) and $(POD_NAMESPACE) in "
            "arguments are replaced with the pod's.",
        ),
    ],
    name: Name = "default",
    env: Annotated[
        list[str] | None, typer.Option(help="An environment variable as NAME=VALUE; may be repeated.")
    ] = None,
) -> None:
    """Register a program of this machine as an image. A running cluster uses it at once."""
    reference = ImageReference.of(image)
    added = Image(
        name=reference.repository,
        version=reference.tag.removeprefix("v"),
        argv=(_found(program[0]),),
        always=tuple(program[1:]),
        env=dict(map(_variable, env or ())),
    )
    Images.load(existing(name).images).add(added)
    notes().print(f"image {added.identity!r} runs {' '.join((*added.argv, *added.always))}", markup=False)


@image.command()
def remove(image: ImageName, name: Name = "default") -> None:
    """Remove a loaded or added image; containers that run it keep running."""
    images = Images.load(existing(name).images)
    reference = ImageReference.of(image)
    program = ":".join(filter(None, (reference.repository, reference.tag.removeprefix("v"))))
    identity = next((each.identity for each in images if each.root and each.fits(image)), program)
    images.remove(identity)
    notes().print(f"image {identity!r} is removed", markup=False)


def _row(image: Image, *, is_added: bool) -> dict[str, str]:
    return {
        "image": image.identity,
        "program": " ".join((*image.argv, *image.always)),
        "from": "loaded" if image.root else "added" if is_added else "machine",
    }


def _found(program: str) -> str:
    """Returns the program's absolute path: the cluster runs in another folder, with another PATH."""
    found = shutil.which(program)
    if found is None:
        raise ConfigError(f"expected an executable program, got {program!r}, which is not on the PATH")
    return str(Path(found).absolute())


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"expected an environment variable as NAME=VALUE, got {text!r}")
    return name, value
