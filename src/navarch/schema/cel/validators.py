"""Refuses expressions that type-check but that the API server refuses: literals that always fail, mixed lists
and maps.
"""

from __future__ import annotations

from navarch.schema.cel import types
from navarch.schema.cel.dispatch import implementation
from navarch.schema.cel.errors import CelError, CelEvaluationError, Faults, error_at
from navarch.schema.cel.expressions import CallExpr, Expr, ListExpr, LiteralExpr, MapExpr
from navarch.schema.cel.library.conversions import CONVERSIONS
from navarch.schema.cel.library.regex import PATTERN_FUNCTIONS, compile_pattern
from navarch.schema.cel.library.strings import CLAUSES, clauses
from navarch.schema.cel.types import CelKind, CelType, unwrap_optional

_NESTING = (ListExpr, MapExpr)
_TOLD_BEFORE = frozenset({"duration", "timestamp"})
"""Conversions whose literals cel-go looks at when it compiles; it comes to all others when it makes the program."""
_CLAUSE_FAULTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


def validate(root: Expr, source: str) -> None:
    """Checks a typed tree. Raises `CelError`."""
    validator = _Validator(source)
    validator.visit(root, in_format=False)
    validator.faults.check()
    validator.check_constants()


class _Validator:
    """Faults that cel-go finds when it makes a program come after all others: `unusable` is the first of them."""

    def __init__(self, source: str) -> None:
        self.faults = Faults(source)
        self._source = source
        self._unusable: CelError | None = None

    def check_constants(self) -> None:
        """Raises `CelError` if a constant cannot be worked out."""
        if self._unusable is not None:
            raise self._unusable

    def _cannot_be(self, node: Expr, problem: str, said: str, remedy: str = "") -> None:
        told = f"program instantiation failed: {said}"
        self._unusable = self._unusable or error_at(self._source, node.at, problem, remedy=remedy, told=told)

    def visit(self, node: Expr, *, in_format: bool) -> None:
        if isinstance(node, CallExpr):
            self._call(node)
            in_format = in_format or node.function == "format"
        elif not in_format and isinstance(node, _NESTING):
            self._alike(node)
        for child in node.children():
            self.visit(child, in_format=in_format)

    def _call(self, node: CallExpr) -> None:
        if node.function == "format":
            self._format(node)
        if node.function in PATTERN_FUNCTIONS:
            self._pattern(node)
        if node.function in CONVERSIONS:
            self._conversion(node)
        if node.function in {"_[_]", "_[?_]"}:
            self._key(node.args[1])

    def _pattern(self, node: CallExpr) -> None:
        pattern = node.operands()[1]
        if isinstance(pattern, LiteralExpr) and isinstance(pattern.value, str):
            try:
                compile_pattern(pattern.value)
            except CelEvaluationError as error:
                self._no_pattern(node, pattern, str(error))

    def _no_pattern(self, node: CallExpr, pattern: Expr, problem: str) -> None:
        remedy = "RE2 knows no lookaround"
        if node.function == "matches":
            said = pattern.said("invalid matches argument")
            self.faults.add(pattern.at, problem, said, remedy=remedy)
        else:
            self._cannot_be(pattern, problem, f"error parsing regexp: {problem}", remedy)

    def _conversion(self, node: Expr) -> LiteralExpr | None:
        try:
            return folded(node)
        except CelEvaluationError as error:
            if isinstance(node, CallExpr) and node.function in _TOLD_BEFORE:
                said = node.args[0].said(f"invalid {node.function} argument")
                self.faults.add(node.at, str(error), said)
            else:
                self._cannot_be(node, str(error), _conversion_error(node))
        return None

    def _key(self, node: Expr) -> None:
        literal = self._conversion(node)
        if literal is not None and (literal.value is None or isinstance(literal.value, list)):
            problem, said = f"{node.type} is no index", node.said(f"unsupported index type '{types.told(node.type)}'")
            self.faults.add(node.at, problem, said, expected="an int, or the key of a map")

    def _alike(self, node: ListExpr | MapExpr) -> None:
        if isinstance(node, ListExpr):
            self._same_type([(each, index in node.optional) for index, each in enumerate(node.elements)], "list")
            return
        self._same_type([(entry.key, False) for entry in node.entries], "map")
        self._same_type([(entry.value, entry.optional) for entry in node.entries], "map")

    def _same_type(self, items: list[tuple[Expr, bool]], what: str) -> None:
        first: CelType | None = None
        for node, optional in items:
            found = unwrap_optional(node.type)[0] if optional else node.type
            if first is not None and found != first:
                self.faults.add(
                    node.at,
                    f"a {what} of {first} has an item of type {found}",
                    node.said(f"expected type '{types.told(first)}' but found '{types.told(found)}'"),
                    expected=str(first),
                    remedy="convert it, or wrap every item in dyn(…)",
                )
                return
            first = found

    def _format(self, node: CallExpr) -> None:
        template, *rest = node.operands()
        if not (isinstance(template, LiteralExpr) and isinstance(template.value, str) and len(rest) == 1):
            return
        values = rest[0]
        if not isinstance(values, ListExpr):
            return
        wanted = self._clauses(node, template.at, template.value)
        if wanted is None:
            return
        for clause, value in zip(wanted, values.elements, strict=False):
            self._fits(clause, value)
        if len(wanted) != len(values.elements):
            self._miscounted(node, len(wanted), len(values.elements))

    def _miscounted(self, node: Expr, clauses: int, values: int) -> None:
        too_many = f"too many arguments supplied to string.format (expected {clauses}, got {values})"
        said = node.said(too_many if values > clauses else f"index {values} out of range")
        problem = f"format() has {clauses} clauses and {values} values"
        self.faults.add(node.at, problem, said, expected="one value for each clause")

    def _clauses(self, node: CallExpr, at: int, template: str) -> list[str] | None:
        try:
            return [clause for clause, *_ in clauses(template) if clause != "%"]
        except ValueError as error:
            named = str(error).rpartition("'")[0][-1:]
            said = node.said(f'could not parse formatting clause: unrecognized formatting clause "{named}"')
            remedy = "write %% for a percent sign"
            self.faults.add(at, str(error), said, expected="%s %d %f %e %b %x %o", remedy=remedy)
        return None

    def _fits(self, clause: str, value: Expr) -> None:
        if value.type.kind is not CelKind.DYN and value.type.kind not in CLAUSES[clause]:
            kinds = ", ".join(sorted(kind.name.lower() for kind in CLAUSES[clause]))
            problem = f"%{clause} does not write a value of type {value.type}"
            said = f"error during formatting: {_CLAUSE_FAULTS[clause]}, was given {types.told(value.type)}"
            self.faults.add(value.at, problem, value.said(said), expected=kinds)
            return
        if clause == "s" and isinstance(value, _NESTING):
            for child in value.children():
                self._fits(clause, child)


def folded(node: Expr) -> LiteralExpr | None:
    """Computes the conversion of a literal; None for any other call. Raises `CelEvaluationError` if it fails."""
    if isinstance(node, LiteralExpr):
        return node
    if isinstance(node, ListExpr) and not node.optional:
        items = [folded(element) for element in node.elements]
        values = [item.value for item in items if item is not None]
        return None if None in items else LiteralExpr(start=node.start, at=node.at, type=node.type, value=values)
    if (
        not isinstance(node, CallExpr)
        or node.function not in CONVERSIONS
        or node.target is not None
        or len(node.args) != 1
    ):
        return None
    argument = folded(node.args[0])
    if argument is None:
        return None
    value = implementation(node.overloads, [node.args[0].type])(argument.value)
    return LiteralExpr(start=node.start, at=node.at, type=node.type, value=value)


def _conversion_error(node: Expr) -> str:
    """What cel-go says of a literal that is not what it is converted to."""
    if not isinstance(node, CallExpr) or len(node.args) != 1:
        return f"invalid {node.type}"
    return f"type conversion error from '{types.told(node.args[0].type)}' to '{types.told(node.type)}'"
