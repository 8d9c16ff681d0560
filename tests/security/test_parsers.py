"""Every parser that the network reaches takes time by the length of its input, and raises nothing but its own errors."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import navarch
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.budget import RequestBudget, opened
from navarch.cluster.server.wire.status_errors import StatusError
from security.parser_table import BODIES, PARSERS, YAML, Parser

SIZE = 2048
TIMES = 4
MOST_GROWTH = 8.0
NOTICEABLE = 0.02
"""Seconds of CPU below which growth is not looked at: a clock tick, or another process in the caches, would decide."""
SLOW_MACHINE = 4.0
"""How many times longer than on a machine of its own a parser may take on one that it shares."""

ROOT = Path(navarch.__file__).parent
ROOMS = ("api", "cluster", "etcd", "schema")
READING = {
    "re": {"compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub"},
    "re2": {"compile"},
    "yaml": {"load", "safe_load"},
    "json": {"loads"},
    "base64": {"b64decode", "urlsafe_b64decode"},
    "struct": {"unpack", "unpack_from", "Struct"},
    "zlib": {"decompress", "decompressobj"},
    "gzip": {"decompress", "GzipFile"},
    "msgspec.json": {"decode", "Decoder"},
    "msgspec.yaml": {"decode"},
}
CONVERTING = {"int", "float", "Decimal"}
NAMED = ("parse", "decode", "scan")

NOT_REACHED = {
    "api/codec.py": "for clients: answers of an API server; msgspec decodes them",
    "api/merge_patch.py": "shows values that were decoded",
    "api/model.py": "looks at annotations of Python classes",
    "api/model_shape.py": "reads paths that msgspec writes",
    "schema/compatibility.py": "compares CRDs for operators; names of versions that the server has checked",
    "cluster/embedded/background_tasks.py": "reads files of the cluster's own folder",
    "cluster/embedded/bootstrap.py": "reads files of the cluster's own folder",
    "cluster/embedded/cluster_folder.py": "reads files of the cluster's own folder",
    "cluster/embedded/control_plane.py": "names of nodes, at most 253 characters",
    "cluster/embedded/http_server.py": "paths of at most one head, which is bounded; see test_request_budget",
    "cluster/embedded/program.py": "its own command line",
    "cluster/controllers": "numbers of objects that were decoded and checked; texts of them are read by `parse_int64`",
    "cluster/nodes/volumes/projections.py": "paths that the server has checked, one greedy group",
    "cluster/nodes/images": "a file of the machine's owner, and images that the machine's owner loads",
    "cluster/nodes/pods": "values of pods that the server has checked; numbers are resource versions and ports",
    "cluster/images": "a program for tests",
    "cluster/nodes/simulated": "looks at pods that were decoded and checked",
    "cluster/nodes/shim": "speaks with its own process",
    "cluster/server/pipeline/authentication/authenticator.py": "a token in a header, which is bounded; the alphabet is looked at by C",
    "cluster/server/pipeline/authorization/rbac.py": "reads what the server itself has written",
    "cluster/server/pipeline/authorization/impersonation.py": "headers, which are bounded; character classes without overlap",
    "cluster/server/pipeline/authentication/tokens.py": "claims of tokens that the server itself has signed",
    "cluster/server/pipeline/admission/plugins/classes.py": "numbers that were decoded",
    "cluster/server/pipeline/admission/pod_security/admission.py": "pods that the server itself has stored; msgspec decodes them",
    "cluster/server/pipeline/admission/pod_security/controls.py": "labels, at most 63 characters",
    "cluster/server/pipeline/admission/webhooks/response.py": "answers of webhooks, whose size is bounded; msgspec decodes them",
    "cluster/server/objects/request_bodies.py": "calls `wire.bodies`",
    "cluster/server/wire/budget.py": "counts before it decodes; see `test_bodies_are_charged`",
    "cluster/server/kinds/builtin": "values that were decoded: numbers, or texts against one character class",
    "cluster/server/kinds/custom/strategy.py": "numbers that were decoded",
    "cluster/server/kinds/custom/definitions.py": "paths that the inspection of schemas writes",
    "cluster/server/pipeline/crd_controller.py": "reads what the server itself has written",
    "cluster/server/pipeline/crd_finalizer.py": "reads what the server itself has written",
    "cluster/server/kinds/custom/conversion.py": "answers of webhooks, whose size is bounded; msgspec decodes them",
    "cluster/server/pipeline/endpoints": "numbers that were decoded, and bodies by `wire.bodies`",
    "cluster/server/objects/fields": "texts that `wire.bodies` has decoded, or single characters of them; msgspec decodes keys",
    "cluster/server/objects/types.py": "names of versions, at most 63 characters",
    "cluster/server/pipeline/subresources": "numbers that were decoded, and bodies by `wire.bodies`",
    "cluster/server/wire/go_text.py": "texts that `wire.bodies` has decoded",
    "cluster/server/objects/storage_reflector.py": "reads what the server itself has written",
    "cluster/server/wire/protobuf": "lengths are checked against what is there; nested messages are bounded by `wire.bodies`",
    "cluster/server/pipeline/proxy/targets.py": "a segment of a path; at most 18 digits",
    "cluster/server/pipeline/proxy/proxy.py": "bounded in size; see test_request_budget",
    "cluster/server/pipeline/nonresource": "names of versions, at most 63 characters",
    "cluster/server/objects/registry.py": "reads what the server itself has written",
    "cluster/server/objects/response_bodies.py": "reads what the server itself has written",
    "cluster/server/pipeline/streams": "numbers of at most five digits; msgspec decodes messages, whose size is bounded",
    "cluster/server/objects/watches.py": "reads what the server itself has written",
    "cluster/storage": "reads what the server itself has written",
    "etcd": "answers of an etcd, decoded by msgspec; the operator's administrator names the etcd",
    "schema/cel": "numbers of values and types; texts are read by the library, which is on the list",
    "schema/generation": "looks at Python classes",
    "schema/values/checks.py": "numbers that were decoded",
    "schema/values/numbers.py": "numbers that were decoded",
    "schema/values/violations.py": "numbers that were decoded",
}
"""Why what reads texts here is not on the list of parsers: by module, or by package for all modules in it."""


def cpu(parser: Parser, given: Any) -> float:
    """The CPU seconds that it takes, at best of three."""
    best = float("inf")
    for _ in range(3):
        before = time.process_time()
        with suppress(*parser.errors):
            parser.read(given)
        best = min(best, time.process_time() - before)
        if best < NOTICEABLE / TIMES:
            break
    return best


@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_parser_takes_time_by_the_length_of_its_input(parser: Parser) -> None:
    """At most eight times as long for four times as much, and a millisecond for a kilobyte; and no foreign errors."""
    wrong = []
    for name, shape in parser.shapes.items():
        large = cpu(parser, shape(SIZE * TIMES))
        if large * 1000 > parser.per_kilobyte * SLOW_MACHINE * SIZE * TIMES / 1024:
            wrong.append(f"{name}: {large * 1000:.1f} ms for {SIZE * TIMES} characters")
        if large > NOTICEABLE and large > MOST_GROWTH * (small := cpu(parser, shape(SIZE))):
            wrong.append(
                f"{name}: {small * 1000:.1f} ms for {SIZE} characters, {large * 1000:.1f} ms for {TIMES} times as many"
            )
        cpu(parser, shape(1))
    assert not wrong


@pytest.mark.parametrize("size", [SIZE, SIZE * TIMES])
def test_bodies_are_charged(size: int) -> None:
    """The budget's counters grow with the body, whatever is in it, and never beyond what a body of that size can hold."""
    for media_type, shapes in (("application/json", BODIES), ("application/yaml", YAML)):
        for shape in shapes.values():
            body = shape(size)
            with opened(RequestBudget()) as budget:
                try:
                    decode_json(body, media_type)
                except StatusError:
                    continue
            assert budget.spent.body_bytes == len(body)
            assert budget.spent.nodes <= 2 * len(body) + 1
            assert budget.spent.nodes <= budget.limits.nodes


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it is written; what is no such name is only told by its end."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
    return ""


def reads(tree: ast.AST) -> bool:
    """Whether a module has code that looks as if it parsed something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.lstrip("_").startswith(NAMED):
            return True
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        module, _, function = called.rpartition(".")
        if function in READING.get(module, ()) or function == "fromisoformat":
            return True
        if called in CONVERTING and node.args and not isinstance(node.args[0], ast.Constant):
            return True
    return False


def readers() -> Iterator[str]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if reads(ast.parse(path.read_text())):
                yield path.relative_to(ROOT).as_posix()


def is_explained(module: str) -> bool:
    return any(module == place or module.startswith(f"{place}/") for place in NOT_REACHED)


def test_every_parser_is_on_the_list() -> None:
    """A module that reads texts is measured, or it is said why the network does not reach it."""
    listed = {module for parser in PARSERS for module in parser.modules}
    found = [*readers()]
    unlisted = [module for module in found if module not in listed and not is_explained(module)]
    assert not unlisted, f"expected each on PARSERS or NOT_REACHED, with a reason: {unlisted}"
    assert all((ROOT / module).is_file() for module in listed)
    idle = [place for place in NOT_REACHED if not any(is_below(place, module) for module in found)]
    assert not idle, f"expected code that reads texts in each place of NOT_REACHED, found none in: {idle}"


def is_below(place: str, module: str) -> bool:
    return module == place or module.startswith(f"{place}/")
