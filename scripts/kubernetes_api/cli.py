"""The command line: `python -m kubernetes_api fetch | generate | check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import rig
from kubernetes_api import files
from kubernetes_api.fetch import fetch
from kubernetes_api.modules import generate
from kubernetes_api.protobuf import stale_messages
from kubernetes_api.server import Server, ServerError
from navarch.errors import ConfigError
from navarch.k8s.published import DATA, published

TYPES = DATA.parent

Command = Callable[[argparse.Namespace], int]


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; problems the user can solve are one message, not a traceback."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options)
    except (ServerError, ConfigError, rig.RigError) as problem:
        print(f"kubernetes_api: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubernetes_api", description="Kubernetes' own API as data and as types.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, summary in (
        ("fetch", _fetch, "Read what an API server publishes into the data files, then generate."),
        ("generate", _generate, "Write the typed kinds from the data files."),
        ("check", _check, "Fail if the typed kinds or the protobuf messages are not what the data files make of them."),
    ):
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(command=command)
        if name == "fetch":
            added.add_argument("--kubeconfig", type=Path, help="of a running cluster (default: the rig starts one)")
    return parser


def _fetch(options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        kubeconfig = options.kubeconfig or stack.enter_context(rig.running()).kubeconfig
        found = fetch(stack.enter_context(Server(kubeconfig)))
    size = files.write(DATA, found)
    print(f"{len(found)} data files, {size / 1000:.0f} kB")
    return _generate(options)


def _generate(_: argparse.Namespace) -> int:
    published.cache_clear()
    modules = generate(published())
    for path in _written() - modules.keys():
        (TYPES / path).unlink()
    for path, text in modules.items():
        (TYPES / path).parent.mkdir(exist_ok=True)
        (TYPES / path).write_text(text, encoding="utf-8")
    print(f"{len(modules)} modules")
    return 0


def _check(_: argparse.Namespace) -> int:
    stale = stale_modules()
    for path in stale:
        print(f"{path} is stale: run `PYTHONPATH=scripts python -m kubernetes_api generate`", file=sys.stderr)
    unlike = stale_messages(published())
    for name in unlike:
        print(f"{name} is stale: run `make judge NAME=protobuf-messages RECORD=1`", file=sys.stderr)
    return 1 if stale or unlike else 0


def stale_modules() -> list[str]:
    """The generated modules that differ from what the data files make of them, are missing, or are left over."""
    modules = generate(published())
    changed = {path for path, text in modules.items() if _read(TYPES / path) != text}
    return sorted(changed | (_written() - modules.keys()))


def _written() -> set[str]:
    return {str(path.relative_to(TYPES)) for path in TYPES.glob("*/*.py")}


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
