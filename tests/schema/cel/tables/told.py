"""What Kubernetes 1.36 says of rules that do not compile: line, column and words of each fault."""

from __future__ import annotations

import re
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "x": {"type": "integer"},
        "y": {"type": "integer"},
        "name": {"type": "string", "maxLength": 10},
        "items": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 5}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 5}},
        "o": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}},
    },
}
VALUE = "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

RULES: list[tuple[str, list[str]]] = [
    ("self.z == 1", ["1:5: undefined field 'z'"]),
    ("self.x ==", ["1:10: Syntax error: mismatched input '<EOF>' " + VALUE]),
    (
        "self.x = 1",
        [
            "1:8: Syntax error: token recognition error at: '= '",
            "1:10: Syntax error: extraneous input '1' expecting <EOF>",
        ],
    ),
    ("self.x == 1 &&", ["1:15: Syntax error: mismatched input '<EOF>' " + VALUE]),
    ("self.x == 1)", ["1:12: Syntax error: extraneous input ')' expecting <EOF>"]),
    ("(self.x == 1", ["1:13: Syntax error: missing ')' at '<EOF>'"]),
    ("foo == 1", ["1:1: undeclared reference to 'foo' (in container '')"]),
    ("self.x == 'a'", ["1:8: found no matching overload for '_==_' applied to '(int, string)'"]),
    ("self.x", ["cel expression must evaluate to a bool"]),
    ("self.name.startWith('a')", ["1:20: undeclared reference to 'startWith' (in container '')"]),
    ("size(self.x) > 1", ["1:5: found no matching overload for 'size' applied to '(int)'"]),
    ("self.x + self.name == 1", ["1:8: found no matching overload for '_+_' applied to '(int, string)'"]),
    ("self.x && true", ["1:5: expected type 'bool' but found 'int'"]),
    ("self.items.all(i, i > 1)", ["1:21: found no matching overload for '_>_' applied to '(string, int)'"]),
    ("self.items.all(i, i)", ["1:19: expected type 'bool' but found 'string'"]),
    ("self.items.all(1, true)", ["1:16: argument must be a simple name"]),
    ("has(self)", ["1:5: invalid argument to has() macro"]),
    ("self.x.y == 1", ["1:7: type 'int' does not support field selection"]),
    (
        "'abc",
        [
            "1:1: Syntax error: token recognition error at: ''abc'",
            "1:5: Syntax error: mismatched input '<EOF>' " + VALUE,
        ],
    ),
    ("self.name.matches('[')", ["1:19: invalid matches argument"]),
    (
        "self.z == 1 && self.w == 2 && foo(1)",
        [
            "1:5: undefined field 'z'",
            "1:20: undefined field 'w'",
            "1:34: undeclared reference to 'foo' (in container '')",
        ],
    ),
    ("self.x == 1 ? 'a' : 1", ["1:13: found no matching overload for '_?_:_' applied to '(bool, string, int)'"]),
    ("self.x == 1 ? true", ["1:19: Syntax error: mismatched input '<EOF>' expecting ':'"]),
    ("[1, 'a', 2", ["1:11: Syntax error: mismatched input '<EOF>' expecting {']', ','}"]),
    ("{'a': 1", ["1:8: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"]),
    ("self.items.map(i, i + 1).size() > 0", ["1:21: found no matching overload for '_+_' applied to '(string, int)'"]),
    ("Foo{a: 1}", ["1:4: undeclared reference to 'Foo' (in container '')"]),
    ("self.x == 1\n  && self.zz == 2", ["2:10: undefined field 'zz'"]),
    ("unknown(self.x)", ["1:8: undeclared reference to 'unknown' (in container '')"]),
    ("self.x == 99999999999999999999", ["1:11: invalid int literal"]),
    ("self.x > 1 and self.x < 3", ["1:12: Syntax error: mismatched input 'and' expecting <EOF>"]),
    ("not self.x", ["1:5: Syntax error: mismatched input 'self' expecting <EOF>"]),
    ("self.x == 1;", ["1:12: Syntax error: token recognition error at: ';'"]),
    ("self.items[0", ["1:13: Syntax error: missing ']' at '<EOF>'"]),
    ("self..x", ["1:6: Syntax error: no viable alternative at input '..'"]),
    ("self.if == 1", ["1:5: undefined field 'if'"]),
    ("if == 1", ["1:1: reserved identifier: if"]),
    ("\"a\" + 1 == 'b'", ["1:5: found no matching overload for '_+_' applied to '(string, int)'"]),
    ("!self.x", ["1:1: found no matching overload for '!_' applied to '(int)'"]),
    ("-self.name == 'a'", ["1:1: found no matching overload for '-_' applied to '(string)'"]),
    ("self.items.exists(i, self.q)", ["1:26: undefined field 'q'"]),
    ("1", ["cel expression must evaluate to a bool"]),
    ("self.m.foo.bar == 'a'", ["1:11: type 'string' does not support field selection"]),
    (
        "self.items.filter(i, i).size() > 1",
        ["1:18: found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'"],
    ),
    ("duration('abc') > duration('1s')", ["1:10: invalid duration argument"]),
    ("self.x in [1, 'a']", ["1:15: expected type 'int' but found 'string'"]),
    ("self.x == 1 || ", ["1:16: Syntax error: mismatched input '<EOF>' " + VALUE]),
    ("&& true", ["1:1: Syntax error: extraneous input '&&' " + VALUE]),
    ("a.b.c == 1", ["1:1: undeclared reference to 'a' (in container '')"]),
    ("self.x ? true : false", ["1:8: found no matching overload for '_?_:_' applied to '(int, bool, bool)'"]),
    ("has(self.q)", ["1:4: undefined field 'q'"]),
    ("has(self.m['a'])", ["1:11: invalid argument to has() macro"]),
    ("self.name.size(1) > 1", ["1:15: found no matching overload for 'size' applied to 'string.(int)'"]),
    (
        "quantity(self.x).isGreaterThan(1)",
        [
            "1:9: found no matching overload for 'quantity' applied to '(int)'",
            "1:31: found no matching overload for 'isGreaterThan' applied to '!error!.(int)'",
        ],
    ),
    ("self.x == * 2", ["1:11: Syntax error: extraneous input '*' " + VALUE]),
    ("self.x ==== 2", ["1:10: Syntax error: extraneous input '==' " + VALUE]),
    (
        "self.x & true",
        [
            "1:8: Syntax error: token recognition error at: '& '",
            "1:10: Syntax error: extraneous input 'true' expecting <EOF>",
        ],
    ),
    (
        "self.x | true",
        [
            "1:8: Syntax error: token recognition error at: '| '",
            "1:10: Syntax error: extraneous input 'true' expecting <EOF>",
        ],
    ),
    ("self.items.all(i, )", ["1:19: Syntax error: mismatched input ')' " + VALUE]),
    ("self.items.all(i, i == 'a'", ["1:27: Syntax error: missing ')' at '<EOF>'"]),
    (
        "size(, 1)",
        [
            "1:6: Syntax error: extraneous input ',' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ],
    ),
    ("[1,,2]", ["1:4: Syntax error: mismatched input ',' expecting ']'"]),
    ("[,]", ["cel expression must evaluate to a bool"]),
    ("{'a' 1}", ["1:6: Syntax error: missing ':' at '1'"]),
    ("{'a': }", ["1:7: Syntax error: mismatched input '}' " + VALUE]),
    ("self.", ["1:6: Syntax error: no viable alternative at input '.'"]),
    ("self.x.", ["1:8: Syntax error: no viable alternative at input '.'"]),
    ("self.x == 1 ?", ["1:14: Syntax error: mismatched input '<EOF>' " + VALUE]),
    ("self.x == 1 ? true :", ["1:21: Syntax error: mismatched input '<EOF>' " + VALUE]),
    (
        "? true : false",
        ["1:1: Syntax error: extraneous input '?' " + VALUE, "1:8: Syntax error: mismatched input ':' expecting <EOF>"],
    ),
    (
        '"abc\\q"',
        [
            "1:1: Syntax error: token recognition error at: '\"abc\\q'",
            "1:7: Syntax error: token recognition error at: '\"'",
            "1:8: Syntax error: mismatched input '<EOF>' " + VALUE,
        ],
    ),
    (
        'self.name == "abc',
        [
            "1:14: Syntax error: token recognition error at: '\"abc'",
            "1:18: Syntax error: mismatched input '<EOF>' " + VALUE,
        ],
    ),
    ("self.name == 'a' 'b'", ["1:18: Syntax error: extraneous input ''b'' expecting <EOF>"]),
    ("self.x === 1", ["1:10: Syntax error: token recognition error at: '= '"]),
    (
        "self.items[]",
        [
            "1:12: Syntax error: mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ],
    ),
    ("self.items[0]]", ["1:14: Syntax error: extraneous input ']' expecting <EOF>"]),
    ("()", ["1:2: Syntax error: mismatched input ')' " + VALUE]),
    (".", ["1:2: Syntax error: no viable alternative at input '.'"]),
    ("@foo", ["1:1: Syntax error: token recognition error at: '@'"]),
    (
        "self.x == 1 # comment",
        [
            "1:13: Syntax error: token recognition error at: '#'",
            "1:15: Syntax error: extraneous input 'comment' expecting <EOF>",
        ],
    ),
    ("self.x == 1 && && true", ["1:16: Syntax error: extraneous input '&&' " + VALUE]),
    (
        "self.x = = 1",
        [
            "1:8: Syntax error: token recognition error at: '= '",
            "1:10: Syntax error: token recognition error at: '= '",
            "1:12: Syntax error: extraneous input '1' expecting <EOF>",
        ],
    ),
    ("self.x =1", ["1:8: Syntax error: token recognition error at: '=1'"]),
    ("true false true", ["1:6: Syntax error: mismatched input 'false' expecting <EOF>"]),
    ("self.x <> 1", ["1:9: Syntax error: extraneous input '>' " + VALUE]),
    ("x -> x", ["1:4: Syntax error: extraneous input '>' " + VALUE]),
    ("self.name == ''' abc", ["1:16: Syntax error: token recognition error at: '' abc'"]),
    ("self.x == 08x", ["1:13: Syntax error: extraneous input 'x' expecting <EOF>"]),
    ("0xZZ == 1", ["1:2: Syntax error: mismatched input 'xZZ' expecting <EOF>"]),
    ("1.e == 1", ["1:2: type 'int' does not support field selection"]),
    ("self.?x == 1", ["1:9: found no matching overload for '_==_' applied to '(optional_type(int), int)'"]),
    (
        "self.x ?: 1",
        [
            "1:9: Syntax error: extraneous input ':' " + VALUE,
            "1:12: Syntax error: mismatched input '<EOF>' expecting ':'",
        ],
    ),
    ("self.x == 18446744073709551616u", ["1:11: invalid uint literal"]),
    ("b'\\u0041' == b'a'", ["1:1: unable to unescape string"]),
    ("'\\ud800' == 'a'", ["1:1: invalid unicode code point"]),
    ("1e999 > 1.0", ["1:1: invalid double literal"]),
    ("{1: 'a', 'b': 'c'} == {}", ["1:10: expected type 'int' but found 'string'"]),
    (
        "self.items.map(i, j, k, l) == []",
        [
            "1:15: undeclared reference to 'map' (in container '')",
            "1:16: undeclared reference to 'i' (in container '')",
            "1:19: undeclared reference to 'j' (in container '')",
            "1:22: undeclared reference to 'k' (in container '')",
            "1:25: undeclared reference to 'l' (in container '')",
        ],
    ),
    ("self.items.all(i, i == i, 2)", ["1:21: argument must be a simple name"]),
    (
        "'%d'.format(['a']) == ''",
        ["1:14: error during formatting: decimal clause can only be used on integers, was given string"],
    ),
    ("'%d %d'.format([1]) == ''", ["1:15: index 1 out of range"]),
    ("'%q'.format([1]) == ''", ['1:12: could not parse formatting clause: unrecognized formatting clause "q"']),
    ("self.x == null", ["1:8: found no matching overload for '_==_' applied to '(int, null)'"]),
    ("optional.of(1) == 1", ["1:16: found no matching overload for '_==_' applied to '(optional_type(int), int)'"]),
    (
        "self.items.optMap(x, x)",
        [
            "1:18: found no matching overload for 'hasValue' applied to 'list(string).()'",
            "1:18: found no matching overload for 'value' applied to 'list(string).()'",
        ],
    ),
    ("self.items[null] == 'a'", ["1:11: found no matching overload for '_[_]' applied to '(list(string), null)'"]),
    ("self.items['a'] == 'a'", ["1:11: found no matching overload for '_[_]' applied to '(list(string), string)'"]),
    ("timestamp('x') == timestamp('y')", ["1:11: invalid timestamp argument", "1:29: invalid timestamp argument"]),
    ("int('abc') == 1", ["program instantiation failed: type conversion error from 'string' to 'int'"]),
    ("self.items.exists_one(i, 1)", ["1:22: found no matching overload for '_?_:_' applied to '(int, int, int)'"]),
    (
        "self.x.all(i, true)",
        ["1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
    ),
    (
        "self.items.map(i, 3, i) == []",
        ["1:15: found no matching overload for '_?_:_' applied to '(int, list(string), list(string))'"],
    ),
    ("[?1] == [1]", ["1:3: expected type 'optional_type(int)' but found 'int'"]),
    ("{'a': ?1} == {}", ["1:7: Syntax error: extraneous input '?' " + VALUE]),
    ("self.items.all(__result__, true)", ["1:16: iteration variable overwrites accumulator variable"]),
    ("self.items.all(i, i, true)", ["1:19: duplicate variable name: i"]),
    ("self.name.startsWith == 'a'", ["1:10: type 'string' does not support field selection"]),
    ("startsWith('a')", ["1:11: found no matching overload for 'startsWith' applied to '(string)'"]),
    ("type(self.x) == int && int == 1", ["1:28: found no matching overload for '_==_' applied to '(type(int), int)'"]),
    ("isURL(1)", ["1:6: found no matching overload for 'isURL' applied to '(int)'"]),
    ("self.metadata.name == 'a'", ["1:5: undefined field 'metadata'"]),
    ("!1", ["1:1: found no matching overload for '!_' applied to '(int)'"]),
    ("self.name + 1", ["1:11: found no matching overload for '_+_' applied to '(string, int)'"]),
    ("size(self.name", ["1:15: Syntax error: missing ')' at '<EOF>'"]),
    ("foo((self.x == 1", ["1:17: Syntax error: mismatched input '<EOF>' expecting ')'"]),
    ("[1 2]", ["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
    ("[1 2 3]", ["1:4: Syntax error: mismatched input '2' expecting {']', ','}"]),
    ("[1, 2", ["1:6: Syntax error: mismatched input '<EOF>' expecting {']', ','}"]),
    ("[(1, 2]", ["1:4: Syntax error: missing ')' at ','"]),
    ("{'a': 1 'b': 2}", ["1:9: Syntax error: mismatched input ''b'' expecting {'}', ','}"]),
    ("{'a' : 1,, 'b': 2}", ["1:10: Syntax error: mismatched input ',' expecting '}'"]),
    ("{'a': 1, 'b'}", ["1:13: Syntax error: mismatched input '}' expecting ':'"]),
    ("{'a'", ["1:5: Syntax error: mismatched input '<EOF>' expecting ':'"]),
    (
        "{1 1 1}",
        ["1:4: Syntax error: missing ':' at '1'", "1:6: Syntax error: extraneous input '1' expecting {'}', ','}"],
    ),
    ("self.items[0 1]", ["1:14: Syntax error: extraneous input '1' expecting ']'"]),
    ("self.items[0 == 1", ["1:18: Syntax error: missing ']' at '<EOF>'"]),
    ("(self.x == 1 && true", ["1:21: Syntax error: missing ')' at '<EOF>'"]),
    ("(self.x 1)", ["1:9: Syntax error: extraneous input '1' expecting ')'"]),
    ("(self.x 1 2)", ["1:9: Syntax error: mismatched input '1' expecting ')'"]),
    ("(1, 2)", ["1:3: Syntax error: mismatched input ',' expecting ')'"]),
    ("self.x == 1 ? true false", ["1:20: Syntax error: missing ':' at 'false'"]),
    ("self.x == 1 ? true : false false", ["1:28: Syntax error: extraneous input 'false' expecting <EOF>"]),
    (
        "self.x == 1 ? : false",
        [
            "1:15: Syntax error: extraneous input ':' " + VALUE,
            "1:22: Syntax error: mismatched input '<EOF>' expecting ':'",
        ],
    ),
    (
        "self.x ? true ; false",
        ["1:15: Syntax error: token recognition error at: ';'", "1:17: Syntax error: missing ':' at 'false'"],
    ),
    ("self.x.1 == 1", ["1:7: Syntax error: mismatched input '.1' expecting <EOF>"]),
    ("self.'a' == 1", ["1:6: Syntax error: no viable alternative at input '.'a''"]),
    (
        "self.name.size( == 1",
        [
            "1:17: Syntax error: extraneous input '==' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
            "1:21: Syntax error: missing ')' at '<EOF>'",
        ],
    ),
    ("self.name.size) == 1", ["1:15: Syntax error: mismatched input ')' expecting <EOF>"]),
    ("has(self.x == 1", ["1:12: invalid argument to has() macro", "1:16: Syntax error: missing ')' at '<EOF>'"]),
    ("self.x in ", ["1:11: Syntax error: mismatched input '<EOF>' " + VALUE]),
    ("self.x == 1 }", ["1:13: Syntax error: extraneous input '}' expecting <EOF>"]),
    ("self.x == ]", ["1:11: Syntax error: mismatched input ']' " + VALUE]),
    ("self.x == ] 1", ["1:11: Syntax error: extraneous input ']' " + VALUE]),
    ("self.x == 1 &&& true", ["1:15: Syntax error: token recognition error at: '& '"]),
    ('self.x == "a" "b" "c"', ["1:15: Syntax error: mismatched input '\"b\"' expecting <EOF>"]),
    ("self.[0]", ["1:6: Syntax error: no viable alternative at input '.['"]),
    ("1 + + 1 == 2", ["1:5: Syntax error: extraneous input '+' " + VALUE]),
    ("! == 1", ["1:3: Syntax error: extraneous input '==' " + VALUE]),
    (
        "foo(",
        [
            "1:5: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ],
    ),
    (
        "[",
        [
            "1:2: Syntax error: mismatched input '<EOF>' expecting {'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ],
    ),
    (
        "{",
        [
            "1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ],
    ),
    ("(", ["1:2: Syntax error: mismatched input '<EOF>' " + VALUE]),
    ("self.x == $x", ["1:11: Syntax error: token recognition error at: '$'"]),
    (
        "self.x == ñ",
        [
            "1:11: Syntax error: token recognition error at: 'ñ'",
            "1:12: Syntax error: mismatched input '<EOF>' " + VALUE,
        ],
    ),
    ("'ñandú' + 1 == 'a'", ["1:9: found no matching overload for '_+_' applied to '(string, int)'"]),
    ("self.x, self.y", ["1:7: Syntax error: mismatched input ',' expecting <EOF>"]),
    ("self.x == 1 , true", ["1:13: Syntax error: mismatched input ',' expecting <EOF>"]),
    ("self.items.exists(i, i == 'a'))", ["1:31: Syntax error: extraneous input ')' expecting <EOF>"]),
    ("self.items.exists(i, (i == 'a')", ["1:32: Syntax error: missing ')' at '<EOF>'"]),
]


def heads(said: str) -> list[str]:
    """The faults of a message, without the lines that they are shown in."""
    return re.findall(r"ERROR: <input>:(.*)", said) or [said]
