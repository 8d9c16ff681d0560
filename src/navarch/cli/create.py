"""`navarch create api`, `navarch create webhook`: add a kind, or webhooks of a kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from navarch.cli.output import Output, print_written
from navarch.errors import ConfigError

create = typer.Typer(no_args_is_help=True, help="Add kinds, reconcilers and webhooks to a project.")

Group = Annotated[str, typer.Option(help="The group, without the domain of the project.")]
Version = Annotated[str, typer.Option(help="The version, such as v1alpha1.")]
KindName = Annotated[str, typer.Option("--kind", help="The kind, such as Memcached.")]


@create.command("api")
def create_api(
    *,
    group: Group,
    version: Version,
    kind: KindName,
    plural: Annotated[str, typer.Option(help="The plural, if it does not follow from the kind.")] = "",
    namespaced: Annotated[bool, typer.Option(help="Whether objects are in namespaces.")] = True,
    resource: Annotated[
        bool | None, typer.Option("--resource/--no-resource", help="Write the class of the kind; asked for if missing.")
    ] = None,
    controller: Annotated[
        bool | None, typer.Option("--controller/--no-controller", help="Write a reconciler; asked for if missing.")
    ] = None,
    controller_name: Annotated[str, typer.Option(help="The name of the controller; by default the kind's.")] = "",
    image: Annotated[str, typer.Option(help="Write an operator that runs this image in a Deployment.")] = "",
    port: Annotated[int, typer.Option(help="The port on which the image listens.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the kind, its reconciler and their files.")] = False,
    output: Output = "table",
) -> None:
    """Add a kind: its class, a sample, a reconciler and a test.

    A second version of a kind gets a conversion and a round-trip test. With --no-resource, write a reconciler for a kind of
    Kubernetes, or for one that this project has already.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.create_api import NewApi  # noqa: PLC0415 - as above
    from navarch.project.scaffold.create_api import create_api as create_in  # noqa: PLC0415 - as above

    project = Project.find(Path.cwd())
    request = NewApi(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        resource=_chosen(resource, image, "Create Resource [y/n]", "--resource or --no-resource"),
        controller=_chosen(controller, image, "Create Controller [y/n]", "--controller or --no-controller"),
        controller_name=controller_name,
        image=image,
        port=port,
        force=force,
    )
    written = create_in(project, request)
    print_written(output, written.files, steps=["make test", "make manifests"])


def _chosen(flag: bool | None, image: str, question: str, flags: str) -> bool:
    """Returns the flag, or asks on a terminal; --image needs both."""
    if flag is not None:
        return flag
    if image:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(f"{question}: expected an answer, but there is no terminal to ask on; add {flags}")
    while True:
        typer.echo(question, err=True)
        answer = sys.stdin.readline()
        if not answer:
            raise ConfigError(f"{question}: expected an answer, got the end of the input; add {flags}")
        if answer.strip().lower() in {"y", "yes"}:
            return True
        if answer.strip().lower() in {"n", "no"}:
            return False
