"""Every parser that the network reaches, and texts that are hard for parsers of their kind.

A shape makes a text of about `size` characters. Texts are what an adversary would send: runs of one character that two
parts of a grammar could take, what is begun and never ended, numbers without end.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from navarch.api import Duration, Quantity
from navarch.api.cron import schedule_of
from navarch.api.json_patch import parse_pointer
from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, parse_label_terms
from navarch.api.selectors import Fields, Labels
from navarch.api.strconv import parse_int64
from navarch.api.times import parse_time
from navarch.cluster.controllers.workloads.jobs.indexes import parse_indexes
from navarch.cluster.controllers.workloads.pod_creation import part_of
from navarch.cluster.nodes.pods.environment import expanded
from navarch.cluster.server.kinds.builtin.batch.checks import schedule_fault
from navarch.cluster.server.kinds.builtin.generic.checks import int_or_percent
from navarch.cluster.server.kinds.builtin.generic.go_time import micro_time_fault, time_fault
from navarch.cluster.server.kinds.builtin.networking.checks import address_name_faults
from navarch.cluster.server.kinds.custom.paths import compile_path
from navarch.cluster.server.objects.fields.elements import canonical_element
from navarch.cluster.server.objects.list_pages import parsed_version
from navarch.cluster.server.objects.selectors import field_selector_fault, label_selector_fault
from navarch.cluster.server.pipeline.authentication.signing import InvalidTokenError, decode_part
from navarch.cluster.server.pipeline.endpoints.options import duration_fault
from navarch.cluster.server.pipeline.proxy.links import Links
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.budget import RequestBudget, opened
from navarch.cluster.server.wire.duplicate_fields import duplicate_paths
from navarch.cluster.server.wire.request import bounded_warnings
from navarch.cluster.server.wire.spdy import FrameDecoder, SpdyError
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.server.wire.times import read_time
from navarch.errors import InvalidValueError, NavarchError
from navarch.schema import cel
from navarch.schema.cel.values import counted_units
from navarch.schema.json_schema import field_path
from navarch.schema.values.formats import _CHECKS as FORMATS  # the table itself: a new format is measured, too
from navarch.schema.values.schema import Schema

__all__ = ["PARSERS", "Parser"]

Shape = Callable[[int], Any]


class Parser(NamedTuple):
    """`read` may raise what is its own to raise. `modules` are those whose code it runs, below `navarch`."""

    name: str
    read: Callable[[Any], object]
    modules: tuple[str, ...]
    shapes: Mapping[str, Shape]
    errors: tuple[type[Exception], ...] = (InvalidValueError,)
    per_kilobyte: float = 1.0
    """How many milliseconds of CPU a kilobyte may take; more only where the amount of input is bounded otherwise."""


def _run(text: str) -> Shape:
    return lambda size: (text * (size // len(text) + 1))[:size]


def _around(begin: str, middle: str, end: str = "") -> Shape:
    return lambda size: begin + (middle * (size // len(middle) + 1))[:size] + end


TEXTS: Mapping[str, Shape] = {
    "digits": _run("9"),
    "zeros": _around("", "0", "x"),
    "digits and no unit": _around("", "1", "!"),
    "a number and a point": _around("1.", "1", "!"),
    "exponent": _around("1e", "9"),
    "seconds": _run("1s"),
    "spaces": _around("", " ", "!"),
    "a number and spaces": _around("1", " ", "!"),
    "letters": _around("", "a", "!"),
    "dashes": _around("a", "-", "!"),
    "dots": _run("a."),
    "empty labels": _run("."),
    "commas": _run(","),
    "terms": _run("a=b,"),
    "sets": _around("a in (", "b,", ")"),
    "open parentheses": _run("("),
    "comments": _run("()"),
    "comments within": _around("", "(", ")"),
    "words": _run("a "),
    "addresses": _around("a:", "b@c,", ";"),
    "quotes": _run('"'),
    "escapes": _run("\\"),
    "escaped quotes": _around('"', '\\"'),
    "percents": _run("%"),
    "percent escapes": _around("https://a/", "%4"),
    "hosts": _around("https://", "a."),
    "colons": _run(":"),
    "brackets": _run("["),
    "brackets and quotes": _run("['"),
    "fields": _run(".a"),
    "indexes": _run("[1]"),
    "a long index": _around("[", "1", "]"),
    "slices": _run("[1:2]"),
    "filters": _run('[?(@.a=="b")]'),
    "open filters": _run("[?(@.a=="),
    "wildcards": _run("[*]"),
    "slashes": _run("/a"),
    "tildes": _run("~"),
    "references": _run("$("),
    "dollars": _run("$"),
    "octets": lambda size: f"1.1.1.{'1' * size}",
    "hexadecimal": _run("f"),
    "a time with a long fraction": _around("2024-01-01T00:00:00.", "1", "Z"),
    "a long year": _around("", "2", "-01-01T00:00:00Z"),
    "ranges": _run("1-2,"),
    "steps": _around("*/", "1", " * * * *"),
    "a schedule": lambda size: f"{'1,' * (size // 2)}1 * * * *",
    "every": _around("@every ", "1", "h"),
    "a percentage": _around("", "1", "%"),
    "surrogates": _run("\ud800"),
    "wide characters": _run("\N{PILE OF POO}"),
    "combining": _run("a\u0301"),
    "zero": _run("\0"),
    "version": _around("1.2.", "3", "-rc.1"),
    "prerelease": _around("1.2.3-", "a.", "!"),
    "tags": _run("<a "),
}


def _nested(begin: str, middle: str, end: str) -> Shape:
    def make(size: int) -> bytes:
        depth = size // (len(begin) + len(end))
        return (begin * depth + middle + end * depth).encode()

    return make


BODIES: Mapping[str, Shape] = {
    "lists": _nested("[", "", "]"),
    "objects": _nested('{"a":', "1", "}"),
    "one key": lambda size: b"{" + b",".join([b'"a":1'] * (size // 6)) + b"}",
    "one key in each": lambda size: b"[" + b",".join([b'{"a":1,"a":2}'] * (size // 14)) + b"]",
    "keys": lambda size: json.dumps({f"k{number}": number for number in range(size // 12)}).encode(),
    "numbers": lambda size: b"[" + b"1," * (size // 2) + b"1]",
    "a long number": lambda size: b'{"a":' + b"9" * size + b"}",
    "a long fraction": lambda size: b'{"a":0.' + b"9" * size + b"}",
    "escapes": lambda size: b'{"a":"' + b"\\u0061" * (size // 6) + b'"}',
    "surrogates": lambda size: b'{"a":"' + b"\\ud800" * (size // 6) + b'"}',
    "quotes": lambda size: b'"' * size,
    "brackets": lambda size: b"[" * size,
    "spaces": lambda size: b" " * size,
    "zeros": lambda size: b"\0" * size,
    "no utf-8": lambda size: b"\xff" * size,
}
YAML: Mapping[str, Shape] = {
    **BODIES,
    "aliases": lambda size: b"a: &a [x]\n" + b"".join(b"b%d: *a\n" % number for number in range(size // 9)),
    "doubling": lambda size: b"".join(
        b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) if n else b"a0: &a0 [x]\n" for n in range(size // 24)
    ),
    "merge keys": lambda size: b"a: &a {x: 1}\nb: {" + b"<<: *a, " * (size // 8) + b"}",
    "anchors": lambda size: b"".join(b"- &a%d x\n" % number for number in range(size // 9)),
    "dashes": lambda size: b"- " * (size // 2),
    "questions": lambda size: b"? " * (size // 2),
    "colons": lambda size: b"a: " * (size // 3),
    "lines": lambda size: b"a\n" * (size // 2),
    "tags": lambda size: b"!!int " * (size // 6),
    "comments": lambda size: b"#" * size,
    "documents": lambda size: b"---\n" * (size // 4),
    "underscores": lambda size: b"a: 1" + b"_" * size,
    "sexagesimal": lambda size: b"a: 1" + b":59" * (size // 3),
    "block": lambda size: b"a: |\n" + b" x\n" * (size // 3),
}


def _decoded(media_type: str) -> Callable[[bytes], object]:
    def read(body: bytes) -> object:
        with opened(RequestBudget()):
            return decode_json(body, media_type)

    return read


_CEL_ENVIRONMENT = {"self": cel.DYN}
CEL: Mapping[str, Shape] = {
    **{name: TEXTS[name] for name in ("digits", "open parentheses", "quotes", "escapes", "brackets", "dots", "zero")},
    "terms joined": lambda size: " && ".join(["self.a == 1"] * (size // 15 + 1)),
    "sums": lambda size: "[" + ",".join(["1+1"] * (size // 4)) + "].size() > 0",
    "empty lists": lambda size: "[" + ",".join(["[]"] * (size // 3)) + "].size() > 0",
    "empty maps": lambda size: "[" + ",".join(["{}"] * (size // 3)) + "].size() > 0",
    "loops": lambda size: " && ".join(["[1].all(x, x == 1)"] * (size // 22 + 1)),
    "dynamic calls": lambda size: " && ".join(["dyn(1) + dyn(2) == dyn(3)"] * (size // 29 + 1)),
    "unknown names": lambda size: " && ".join(f"a{number}" for number in range(size // 10)),
    "negations": lambda size: "!" * size + "true",
    "strings": lambda size: "'" + "a" * size + "' == ''",
    "open strings": _run("'a"),
    "triple quotes": _around("'''", "''"),
    "raw strings": _run("r'''a"),
    "formats": lambda size: "'" + "%s" * (size // 4) + "'.format([" + "1," * (size // 4) + "1]) == ''",
}


def _compiled(text: str) -> object:
    return cel.compile(text, _CEL_ENVIRONMENT)


def _evaluating(expression: str) -> Callable[[str], object]:
    program = cel.compile(expression, {"self": cel.STRING})
    return lambda text: program.evaluate({"self": text})


_TEXT_FUNCTIONS = (
    "int(self)",
    "uint(self)",
    "double(self)",
    "bool(self)",
    "duration(self)",
    "timestamp(self)",
    "bytes(self)",
    "quantity(self).isInteger()",
    "isQuantity(self)",
    "url(self).getQuery()",
    "isURL(self)",
    "ip(self).family()",
    "isCIDR(self)",
    "semver(self).major()",
    "isSemver(self, true)",
    "format.uri().validate(self).hasValue()",
    "format.uuid().validate(self).hasValue()",
    "format.byte().validate(self).hasValue()",
    "format.date().validate(self).hasValue()",
    "format.datetime().validate(self).hasValue()",
    "format.dns1123Subdomain().validate(self).hasValue()",
    "format.qualifiedName().validate(self).hasValue()",
    "self.format([1])",
    "'a'.matches(self)",
    "timestamp('2024-01-01T00:00:00Z').getHours(self)",
    "strings.quote(self)",
    "self.lowerAscii()",
    "self.trim()",
    "self.split('')",
    "self.lastIndexOf('b' + self)",
    "self.indexOf('b' + self)",
    "self.replace('a', 'b')",
    "'%s'.format([[self]])",
)
_CEL_LIBRARY = (
    "schema/cel/library/conversions.py",
    "schema/cel/library/formats.py",
    "schema/cel/library/strings.py",
    "schema/cel/library/network.py",
    "schema/cel/library/quantities.py",
    "schema/cel/library/regex.py",
    "schema/patterns.py",
    "schema/cel/library/times.py",
)

_LISTS: Mapping[str, Shape] = {
    "numbers": lambda size: list(range(size // 8)),
    "equal numbers": lambda size: [1] * (size // 8),
    "texts": lambda size: [f"text-{number}" for number in range(size // 16)],
    "objects": lambda size: [{"name": f"n{number}", "port": number} for number in range(size // 32)],
    "equal objects": lambda size: [{"name": "n", "port": 1}] * (size // 32),
}


def _checked(schema: dict[str, Any]) -> Callable[[Any], object]:
    compiled = Schema({"type": "object", "properties": {"spec": schema}})
    return lambda value: compiled.validate({"spec": value})


_ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
    "required": ["name", "port"],
}
_LIST_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-preserve-unknown-fields": True}},
    "map": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "port"],
        "items": _ITEM,
    },
    "enum": {"type": "array", "items": {"type": "integer", "enum": [*range(1000)]}},
    "any of": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True, "anyOf": [{"minimum": 1}] * 3}},
    "pattern": {"type": "array", "items": {"type": "string", "pattern": "^(a|a)*$"}},
}


def _links(page: str) -> object:
    links = Links("/api/v1/namespaces/default/pods/web/proxy", "", "localhost")
    return links.page(page.encode("utf-8", "surrogatepass"))


def _frames(data: str) -> object:
    return list(FrameDecoder().feed(data.encode("utf-8", "surrogatepass")))


def _token_part(text: str) -> object:
    return decode_part(base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode())


def _texts(
    name: str, read: Callable[[Any], object], *modules: str, errors: tuple[type[Exception], ...] = (InvalidValueError,)
) -> Parser:
    return Parser(name, read, modules, TEXTS, errors)


PARSERS: tuple[Parser, ...] = (
    Parser("JSON bodies", _decoded("application/json"), ("cluster/server/wire/bodies.py",), BODIES, (StatusError,)),
    Parser(
        "YAML bodies",
        _decoded("application/yaml"),
        (
            "cluster/server/wire/bodies.py",
            "cluster/server/wire/yaml_bodies.py",
            "cluster/server/wire/json_errors.py",
        ),
        YAML,
        (StatusError,),
        per_kilobyte=4.0,
    ),
    Parser(
        "duplicate keys",
        duplicate_paths,
        ("cluster/server/wire/duplicate_fields.py",),
        BODIES,
        (ValueError, RecursionError),
    ),
    _texts("durations", Duration, "api/duration.py"),
    _texts("quantities", Quantity, "api/quantity.py"),
    _texts("integers", parse_int64, "api/strconv.py"),
    _texts("times", parse_time, "api/times.py"),
    _texts("times of stored objects", read_time, "cluster/server/wire/times.py"),
    _texts("warnings", lambda text: bounded_warnings([text]), "cluster/server/wire/request.py"),
    _texts("label selectors", Labels, "api/selectors.py", "api/names.py"),
    _texts("label terms", parse_label_terms, "api/names.py"),
    _texts("field selectors", Fields, "api/selectors.py"),
    _texts("faults of label selectors", label_selector_fault, "cluster/server/objects/selectors.py"),
    _texts("faults of field selectors", field_selector_fault, "cluster/server/objects/selectors.py"),
    _texts("schedules", schedule_of, "api/cron.py"),
    _texts("faults of schedules", schedule_fault, "cluster/server/kinds/builtin/batch/checks.py"),
    *(
        _texts(f"names: {name}", rule.faults, "api/names.py")
        for name, rule in {
            "DNS labels": DNS_LABEL,
            "DNS subdomains": DNS_SUBDOMAIN,
            "label keys": LABEL_KEY,
            "label values": LABEL_VALUE,
        }.items()
    ),
    _texts("JSON pointers", parse_pointer, "api/json_patch.py", errors=(NavarchError,)),
    _texts("timeouts", duration_fault, "cluster/server/pipeline/endpoints/options.py"),
    _texts("faults of times", time_fault, "cluster/server/kinds/builtin/generic/go_time.py"),
    _texts("faults of micro times", micro_time_fault, "cluster/server/kinds/builtin/generic/go_time.py"),
    _texts("resource versions", parsed_version, "cluster/server/objects/list_pages.py", errors=(StatusError,)),
    _texts("JSON paths", compile_path, "cluster/server/kinds/custom/paths.py"),
    _texts(
        "percentages",
        lambda text: [*int_or_percent(text, "a", at_most_all=True)],
        "cluster/server/kinds/builtin/generic/checks.py",
    ),
    _texts("names of addresses", address_name_faults, "cluster/server/kinds/builtin/networking/checks.py"),
    _texts(
        "elements of managed fields",
        lambda text: [canonical_element(f"{form}:{text}") for form in "fikv"],
        "cluster/server/objects/fields/elements.py",
        errors=(ValueError,),
    ),
    _texts("proxied pages", _links, "cluster/server/pipeline/proxy/links.py"),
    _texts("SPDY frames", _frames, "cluster/server/wire/spdy.py", errors=(SpdyError,)),
    _texts(
        "parts of tokens", _token_part, "cluster/server/pipeline/authentication/signing.py", errors=(InvalidTokenError,)
    ),
    _texts("references in commands", lambda text: expanded(text, {}), "cluster/nodes/pods/environment.py"),
    _texts(
        "parts of a number", lambda text: part_of(text, 10, up=True), "cluster/controllers/workloads/pod_creation.py"
    ),
    _texts("indexes of jobs", lambda text: parse_indexes(text, 100), "cluster/controllers/workloads/jobs/indexes.py"),
    _texts("spans of time", lambda text: [*counted_units(text)], "schema/cel/values.py"),
    _texts("paths of fields", lambda text: field_path(text, {"type": "object"}), "schema/json_schema.py"),
    *(
        Parser(f"format {name}", check, ("schema/values/formats.py", "schema/values/addresses.py"), TEXTS, ())
        for name, check in FORMATS.items()
    ),
    *(
        Parser(
            f"lists: {name}", _checked(schema), ("schema/values/list_types.py", "schema/values/formats.py"), _LISTS, ()
        )
        for name, schema in _LIST_SCHEMAS.items()
    ),
    Parser(
        "CEL",
        _compiled,
        ("schema/cel/lexer.py", "schema/cel/parser.py"),
        CEL,
        (cel.CelError,),
        per_kilobyte=60.0,  # 50,000 characters a request: see `RequestBudget.charge_cel_source`
    ),
    *(
        Parser(f"CEL: {expression}", _evaluating(expression), _CEL_LIBRARY, TEXTS, (cel.CelEvaluationError,))
        for expression in _TEXT_FUNCTIONS
    ),
)
