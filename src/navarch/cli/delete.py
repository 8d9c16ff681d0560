"""`navarch delete api`, `navarch delete webhook`: remove scaffolded files that the user has not changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from navarch.cli.output import Output, notes, print_json
from navarch.cli.questions import ask

if TYPE_CHECKING:
    from navarch.project.scaffold.delete import ScaffoldDeletion
    from navarch.project.scaffold.scaffolds import WebhookType

delete = typer.Typer(no_args_is_help=True, help="Remove kinds and webhooks from a project.")

Group = Annotated[str, typer.Option(help="The group, without the domain of the project.")]
Version = Annotated[str, typer.Option(help="The version, such as v1alpha1.")]
KindName = Annotated[str, typer.Option("--kind", help="The kind, such as Memcached.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@delete.command("api")
def delete_api(*, group: Group, version: Version, kind: KindName, yes: Yes = False, output: Output = "table") -> None:
    """Remove a version of a kind: its class, sample, reconcilers, webhooks and tests.

    The files are listed first. Nothing is removed if you have changed one of them, or if another file imports the class.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.delete import plan_delete_api  # noqa: PLC0415 - as above

    _execute(plan_delete_api(Project.find(Path.cwd()), group, version, kind), yes=yes, output=output)


@delete.command("webhook")
def delete_webhook(
    *,
    group: Group,
    version: Version,
    kind: KindName,
    defaulting: Annotated[bool, typer.Option("--defaulting", help="The webhook that sets defaults.")] = False,
    programmatic_validation: Annotated[
        bool, typer.Option("--programmatic-validation", help="The webhook that validates.")
    ] = False,
    conversion: Annotated[bool, typer.Option("--conversion", help="The conversions from and to this version.")] = False,
    yes: Yes = False,
    output: Output = "table",
) -> None:
    """Remove webhooks of a kind, with their tests. Nothing is removed if you have changed one of the files."""
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.delete import plan_delete_webhooks  # noqa: PLC0415 - as above

    chosen: tuple[tuple[bool, WebhookType], ...] = (
        (defaulting, "defaulting"),
        (programmatic_validation, "validation"),
    )
    types = [each for is_chosen, each in chosen if is_chosen]
    deletion = plan_delete_webhooks(Project.find(Path.cwd()), group, version, kind, types=types, conversion=conversion)
    _execute(deletion, yes=yes, output=output)


def _execute(deletion: ScaffoldDeletion, *, yes: bool, output: str) -> None:
    if output == "table":
        for path in deletion.files:
            typer.echo(path)
    for each in deletion.kept:
        notes().print(f"stays: {each}", markup=False)
    question = f"Delete these files ({len(deletion.files)}) [y/n]"
    if not yes and not ask(question, "--yes"):
        notes().print("nothing was deleted")
        raise typer.Exit(1)
    deletion.execute()
    if output == "json":
        print_json({"removed": deletion.files, "kept": deletion.kept})
    else:
        notes().print("Next: make manifests")
