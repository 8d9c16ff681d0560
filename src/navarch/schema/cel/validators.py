"""What the API server refuses although the types fit: literals that can only fail, and mixed lists and maps."""

from __future__ import annotations

from navarch.schema.cel.dispatch import implementation
from navarch.schema.cel.errors import CelEvaluationError, error_at
from navarch.schema.cel.library.conversions import CONVERSIONS
from navarch.schema.cel.library.formatting import CLAUSES, clauses
from navarch.schema.cel.library.regex import PATTERN_FUNCTIONS, compile_pattern
from navarch.schema.cel.nodes import Call, ListLiteral, Literal, MapLiteral, Node
from navarch.schema.cel.types import CelType, Kind, unwrap_optional

_NESTING = (ListLiteral, MapLiteral)


def validate(root: Node, source: str) -> None:
    """Check a tree whose types are known. Raises `CelError`."""
    _Validator(source).visit(root, in_format=False)


class _Validator:
    def __init__(self, source: str) -> None:
        self._source = source

    def visit(self, node: Node, *, in_format: bool) -> None:
        if isinstance(node, Call):
            self._call(node)
            in_format = in_format or node.function == "format"
        elif not in_format and isinstance(node, _NESTING):
            self._alike(node)
        for child in node.children():
            self.visit(child, in_format=in_format)

    def _call(self, node: Call) -> None:
        if node.function == "format":
            self._format(node)
        if node.function in PATTERN_FUNCTIONS:
            self._pattern(node)
        if node.function in CONVERSIONS:
            self._conversion(node)
        if node.function in {"_[_]", "_[?_]"}:
            self._key(node.args[1])

    def _pattern(self, node: Call) -> None:
        pattern = node.operands()[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            try:
                compile_pattern(pattern.value)
            except CelEvaluationError as error:
                raise error_at(self._source, pattern.at, str(error), remedy="RE2 knows no lookaround") from None

    def _conversion(self, node: Node) -> None:
        try:
            folded(node)
        except CelEvaluationError as error:
            raise error_at(self._source, node.at, str(error)) from None

    def _key(self, node: Node) -> None:
        self._conversion(node)
        literal = folded(node)
        if literal is not None and (literal.value is None or isinstance(literal.value, list)):
            raise error_at(self._source, node.at, f"{node.type} is no index", expected="an int, or the key of a map")

    def _alike(self, node: ListLiteral | MapLiteral) -> None:
        if isinstance(node, ListLiteral):
            self._same_type([(each, index in node.optional) for index, each in enumerate(node.elements)], "list")
            return
        self._same_type([(entry.key, False) for entry in node.entries], "map")
        self._same_type([(entry.value, entry.optional) for entry in node.entries], "map")

    def _same_type(self, items: list[tuple[Node, bool]], what: str) -> None:
        first: CelType | None = None
        for node, optional in items:
            found = unwrap_optional(node.type)[0] if optional else node.type
            if first is not None and found != first:
                raise error_at(
                    self._source,
                    node.at,
                    f"a {what} of {first} has an item of type {found}",
                    expected=str(first),
                    remedy="convert it, or wrap every item in dyn(…)",
                )
            first = found

    def _format(self, node: Call) -> None:
        template, *rest = node.operands()
        if not (isinstance(template, Literal) and isinstance(template.value, str) and len(rest) == 1):
            return
        values = rest[0]
        if not isinstance(values, ListLiteral):
            return
        wanted = self._clauses(template, template.value)
        if len(wanted) != len(values.elements):
            raise error_at(
                self._source,
                node.at,
                f"format() has {len(wanted)} clauses and {len(values.elements)} values",
                expected="one value for each clause",
            )
        for clause, value in zip(wanted, values.elements, strict=True):
            self._fits(clause, value)

    def _clauses(self, node: Literal, template: str) -> list[str]:
        try:
            return [clause for clause, *_ in clauses(template) if clause != "%"]
        except ValueError as error:
            remedy = "write %% for a percent sign"
            raise error_at(self._source, node.at, str(error), expected="%s %d %f %e %b %x %o", remedy=remedy) from None

    def _fits(self, clause: str, value: Node) -> None:
        if value.type.kind is not Kind.DYN and value.type.kind not in CLAUSES[clause]:
            kinds = ", ".join(sorted(kind.name.lower() for kind in CLAUSES[clause]))
            raise error_at(
                self._source, value.at, f"%{clause} does not write a value of type {value.type}", expected=kinds
            )
        if clause == "s" and isinstance(value, _NESTING):
            for child in value.children():
                self._fits(clause, child)


def folded(node: Node) -> Literal | None:
    """A conversion of a literal, carried out; None if it is none. Raises `CelEvaluationError` if it fails."""
    if isinstance(node, Literal):
        return node
    if isinstance(node, ListLiteral) and not node.optional:
        items = [folded(element) for element in node.elements]
        values = [item.value for item in items if item is not None]
        return None if None in items else Literal(start=node.start, at=node.at, type=node.type, value=values)
    if not isinstance(node, Call) or node.function not in CONVERSIONS or node.target is not None or len(node.args) != 1:
        return None
    argument = folded(node.args[0])
    if argument is None:
        return None
    value = implementation(node.overloads, [node.args[0].type])(argument.value)
    return Literal(start=node.start, at=node.at, type=node.type, value=value)
