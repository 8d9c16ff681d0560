"""`navarch create api`, `navarch create webhook`: add a kind, or webhooks of a kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from navarch.cli.output import Output, print_written
from navarch.cli.questions import ask

if TYPE_CHECKING:
    from navarch.project.scaffold.scaffolds import WebhookType

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
    crd: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The CRD of a kind that another project defines.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the kind, its reconciler and their files.")] = False,
    output: Output = "table",
) -> None:
    """Add a kind: its class, a sample, a reconciler and a test.

    A second version of a kind gets a conversion and a round-trip test. With --no-resource, write a reconciler for a kind of
    Kubernetes, of this project, or of another project, whose CRD is in the file --crd.
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
        resource=False
        if crd and resource is None
        else _chosen(resource, image, "Create Resource [y/n]", "--resource or --no-resource"),
        controller=_chosen(controller, image, "Create Controller [y/n]", "--controller or --no-controller"),
        controller_name=controller_name,
        image=image,
        port=port,
        crd=crd,
        force=force,
    )
    written = create_in(project, request)
    print_written(output, written.files, steps=["make test", "make manifests"])


@create.command("webhook")
def create_webhook(
    *,
    group: Group,
    version: Version,
    kind: KindName,
    defaulting: Annotated[bool, typer.Option("--defaulting", help="Set defaults before objects are stored.")] = False,
    programmatic_validation: Annotated[
        bool, typer.Option("--programmatic-validation", help="Deny objects that the schema cannot refuse.")
    ] = False,
    conversion: Annotated[bool, typer.Option("--conversion", help="Convert between this and other versions.")] = False,
    spoke: Annotated[
        list[str] | None, typer.Option(help="A version to convert from and to this one; by default all others.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace webhooks that exist, and their files.")] = False,
    output: Output = "table",
) -> None:
    """Add webhooks to a kind: a module and a test for each."""
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.create_webhook import NewWebhooks, create_webhooks  # noqa: PLC0415 - as above

    chosen: tuple[tuple[bool, WebhookType], ...] = (
        (defaulting, "defaulting"),
        (programmatic_validation, "validation"),
    )
    request = NewWebhooks(
        group=group,
        version=version,
        kind=kind,
        types=tuple(each for is_chosen, each in chosen if is_chosen),
        conversion=conversion,
        spokes=tuple(spoke or ()),
        force=force,
    )
    written = create_webhooks(Project.find(Path.cwd()), request)
    print_written(output, written.files, steps=["make test", "make manifests"])


def _chosen(flag: bool | None, image: str, question: str, flags: str) -> bool:
    """Returns the flag, or asks on a terminal; --image needs both."""
    if flag is not None:
        return flag
    return bool(image) or ask(question, flags)
