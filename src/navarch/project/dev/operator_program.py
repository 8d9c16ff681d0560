"""The operator of a project as a program: imports its code freshly, and runs it as `main` would."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from navarch.errors import NavarchError
from navarch.project.dev.messages import LoadFailed, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from navarch.operator import Operator
    from navarch.operator.main import ProgramOptions
    from navarch.project.project import Project

LogFormat = Literal["auto", "json", "console"]
_DRAIN_SECONDS: Final = 1.0
"""A developer waits for the next version: reconciles under way have less time than in production."""
_REMOVE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How `navarch run` runs an operator."""

    program: ProgramOptions
    log_format: LogFormat = "auto"
    context: str | None = None
    """The context of the kubeconfig; by default its current one."""
    owns_cluster: bool = False
    """Whether the cluster is for development: CRDs are installed, and those of earlier code are replaced."""


class LoadError(NavarchError):
    """The code of a project could not be imported."""

    def __init__(self, failure: LoadFailed) -> None:
        super().__init__(failure.cause)
        self.failure = failure


def load_fresh(project: Project, options: RunOptions) -> Operator:
    """Imports the operator of the project and sets its options. Raises `LoadError`."""
    from navarch.operator.loader import load_operator  # noqa: PLC0415 - `navarch --help` needs no operator
    from navarch.operator.main import configure  # noqa: PLC0415 - as above

    source = project.root / "src"
    sys.path_hooks.insert(0, fresh_code_hook(source.resolve()))
    sys.path_importer_cache.clear()
    sys.path.insert(0, str(source.resolve()))
    try:
        operator = load_operator(project.settings.package)
        configure(operator, options.program)
    except (Exception, SystemExit) as error:
        raise LoadError(describe_failure(error, project)) from error
    operator.drain_seconds = min(operator.drain_seconds, _DRAIN_SECONDS)
    if options.owns_cluster:
        operator.check_permissions = False  # its kubeconfig is the administrator's
        operator.crds = "force" if operator.crds != "ignore" else "ignore"
    return operator


def fresh_code_hook(source: Path) -> Callable[[str], Any]:
    """Returns the hook for `sys.path_hooks` that imports modules below `source` without bytecode caches.

    A cache is told from its source by seconds and size: a file that is saved twice in a second would be imported as it was
    before.
    """
    hook = FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (_FreshLoader, [".py"]))

    def find(path: str) -> Any:
        if source != Path(path) and source not in Path(path).parents:
            raise ImportError(path)
        return hook(path)

    return find


class _FreshLoader(SourceFileLoader):
    def path_stats(self, path: str) -> Any:  # the name of the parameter is importlib's
        raise OSError(f"{path}: no bytecode cache is used")


def describe_failure(error: BaseException, project: Project) -> LoadFailed:
    """Returns where and why the import failed: the last line of the project's own code."""
    import traceback  # noqa: PLC0415 - only for failures

    root = project.root.resolve()
    frames = [each for each in traceback.extract_tb(error.__traceback__) if root in Path(each.filename).parents]
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    place = f"{_relative(frames[-1].filename, root)}:{frames[-1].lineno}" if frames else ""
    trace = "".join(traceback.format_list(frames[-3:]))
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{_relative(error.filename, root)}:{error.lineno}"
        cause = f"{type(error).__name__}: {error.msg}"
        trace = f"{(error.text or '').rstrip()}\n"
    elif isinstance(error, NavarchError):
        cause = str(error)
    elif isinstance(error, ModuleNotFoundError) and error.name == project.settings.package:
        cause = (
            f"expected the package {project.settings.package} in {project.root / 'src'}, got none; name your package in "
            f"pyproject.toml: [tool.navarch] package"
        )
    elif isinstance(error, ModuleNotFoundError):
        cause = f"{cause}; is it installed in this environment, {sys.prefix}?"
    return LoadFailed(place, shortened(cause), shortened(trace.rstrip("\n")))


def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return str(path.relative_to(root)) if root in path.parents else file


def run_here(project: Project, options: RunOptions) -> int:
    """Runs the operator in this process until a signal, and returns the exit code. Raises `LoadError`."""
    import logging  # noqa: PLC0415 - `navarch --help` needs no operator

    from navarch.observe import logs  # noqa: PLC0415 - as above
    from navarch.operator.process import serve  # noqa: PLC0415 - as above
    from navarch.operator.program import run_until_signal  # noqa: PLC0415 - as above

    operator = load_fresh(project, options)
    if not logging.getLogger().handlers:
        logs.setup(options.log_format, options.program.log_level)
    is_well = run_until_signal(operator.name, lambda client: serve(client, operator), config_of(options))
    if options.owns_cluster:
        remove_registrations(operator.name)
    return 0 if is_well else 1


def remove_registrations(operator: str) -> None:
    """Deletes the webhook configurations of an operator that has ended from a cluster for development.

    Nobody answers them any more, so that the API server would refuse writes until the operator runs again.
    """
    import asyncio  # noqa: PLC0415 - `navarch --help` needs no operator

    from navarch.client import connect  # noqa: PLC0415 - as above
    from navarch.webhook.registration import remove_webhooks  # noqa: PLC0415 - as above

    async def remove() -> None:
        async with connect() as client:
            await remove_webhooks(client.using(timeout=_REMOVE_SECONDS), operator)

    with contextlib.suppress(NavarchError):  # a cluster that was stopped meanwhile, for example
        asyncio.run(remove())


def config_of(options: RunOptions) -> Any:
    """Returns the configuration of the chosen context; None for the current one, which is read when it is needed."""
    from navarch.client import load  # noqa: PLC0415 - as above

    return None if options.context is None else load(context=options.context)
