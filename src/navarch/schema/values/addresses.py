"""URIs and e-mail addresses as Go accepts them: more of them than the RFCs allow."""

from __future__ import annotations

import ipaddress
import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT = re.compile(r"(?::[0-9]*)?")
# Escapes may stand for a sign beyond ASCII, and for the percent sign before a zone.
_HOST = re.compile(r"""(?:[A-Za-z0-9._~!$&'()*+,;=\]<>"-]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*""")


def is_uri(text: str) -> bool:
    """Returns True for an absolute URI, or a rooted path, as an HTTP request line has it.

    >>> is_uri("https://example.com/a"), is_uri("mailto:jane"), is_uri("/a"), is_uri("a")
    (True, True, True, False)
    """
    if not text or re.search(r"[\x00-\x1f\x7f]", text):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None  # what follows is opaque
    authority = ""
    if scheme and rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    return not _BAD_ESCAPE.search(rest) and _is_authority(authority)


def _is_authority(text: str) -> bool:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user) or _BAD_ESCAPE.search(user):
        return False
    if not host.startswith("["):
        name, colon, port = host.rpartition(":")
        return bool(_HOST.fullmatch(name if colon else host) and _PORT.fullmatch(colon + port if colon else ""))
    inside, bracket, port = host[1:].rpartition("]")
    return bool(bracket and _PORT.fullmatch(port)) and _is_literal(inside)


def _is_literal(text: str) -> bool:
    """An address in brackets; a zone stands behind an escaped percent sign."""
    address, _, zone = text.partition("%25")
    try:
        return "%" not in address + zone and ipaddress.IPv6Address(address) is not None
    except ValueError:
        return False


def is_email(text: str) -> bool:
    """Returns True for one address, with or without a name before it, or a group of one.

    >>> is_email("Jane <jane@example.com>"), is_email("jane")
    (True, False)
    """
    try:
        reader = _Mail(text)
        count = reader.address(groups=True)
        reader.skip_comments()
    except _NoAddressError:
        return False
    return count == 1 and reader.is_at_end()


class _NoAddressError(Exception):
    """There is something else."""


class _Mail:
    """Takes an address apart from left to right; each method goes on behind one part, or raises."""

    _SPACE = re.compile("[ \t]*")
    _ATOM = re.compile(r"""[^\x00- ()<>\[\]:;@\\,"\x7f]+""")
    _QUOTED = re.compile(r'"((?:[^\x00-\x08\x0a-\x1f"\\\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*)"')
    _LITERAL = re.compile(r"\[([^\x00- \[\]\\\x7f]*)\]")

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def is_at_end(self) -> bool:
        return self._place == len(self._text)

    def _begins(self, sign: str) -> bool:
        return self._text.startswith(sign, self._place)

    def address(self, *, groups: bool) -> int:
        """How many addresses there were: a group may have any number of them."""
        self._skip_space()
        before = self._place
        try:
            self._spec()
        except _NoAddressError:
            self._place = before
            return self._named(groups=groups)
        self._skip_space()
        if self._begins("("):
            self._comment()
        return 1

    def skip_comments(self) -> None:
        self._skip_space()
        while self._begins("("):
            self._comment()
            self._skip_space()

    def _named(self, *, groups: bool) -> int:
        if not self._begins("<"):
            self._phrase()
        self._skip_space()
        if groups and self._takes(":"):
            return self._group()
        self._require("<")
        self._spec()
        self._require(">")
        return 1

    def _group(self) -> int:
        if self._takes(";"):
            return 0
        count = 0
        while True:
            count += self.address(groups=False)
            self.skip_comments()
            if self._takes(";"):
                self.skip_comments()
                return count
            self._require(",")

    def _phrase(self) -> None:
        words = 0
        while True:
            if words:
                self.skip_comments()
            self._skip_space()
            try:
                self._match(self._QUOTED if self._begins('"') else self._ATOM)
            except _NoAddressError:
                if not words:
                    raise
                return
            words += 1

    def _spec(self) -> None:
        self._skip_space()
        if self._begins('"'):
            if self._match(self._QUOTED) == '""':
                raise _NoAddressError
        else:
            self._dotted()
        self._require("@")
        self._skip_space()
        if self._begins("["):
            self._address_literal()
        else:
            self._dotted()

    def _dotted(self) -> None:
        atom = self._match(self._ATOM)
        if atom.startswith(".") or atom.endswith(".") or ".." in atom:
            raise _NoAddressError

    def _address_literal(self) -> None:
        literal = self._match(self._LITERAL)[1:-1]
        try:
            if "%" not in literal:
                ipaddress.ip_address(literal)
                return
        except ValueError:
            pass
        raise _NoAddressError

    def _comment(self) -> None:
        depth, at = 0, self._place
        while at < len(self._text):
            letter = self._text[at]
            at += 2 if letter == "\\" and at + 1 < len(self._text) else 1
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if not depth:
                self._place = at
                return
        raise _NoAddressError

    def _skip_space(self) -> None:
        self._match(self._SPACE)

    def _takes(self, sign: str) -> bool:
        if not self._begins(sign):
            return False
        self._place += len(sign)
        return True

    def _require(self, sign: str) -> None:
        if not self._takes(sign):
            raise _NoAddressError

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._place)
        if found is None:
            raise _NoAddressError
        self._place = found.end()
        return found[0]
