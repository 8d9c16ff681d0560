"""Splits the path of a proxied request, and rewrites links of pages so that they lead through the server."""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

_PLAIN: Final = "/$&+,:;=@~-._"
"""What Go leaves as it is in a path."""
_PARTS: Final = {True: 7, False: 5}
"""How many parts of a path come before those for the place behind, in a namespace and in none."""
_LINKS: Final[dict[str, frozenset[str]]] = {
    tag: frozenset(names.split())
    for tag, names in {
        **dict.fromkeys(("a", "area", "base", "link"), "href"),
        **dict.fromkeys(("audio", "embed", "script", "source"), "src"),
        **dict.fromkeys(("blockquote", "del", "ins", "q"), "cite"),
        **dict.fromkeys(("frame", "iframe"), "longdesc src"),
        "applet": "codebase",
        "body": "background",
        "button": "formaction",
        "command": "icon",
        "form": "action",
        "head": "profile",
        "html": "manifest",
        "img": "longdesc src usemap",
        "input": "src usemap formaction",
        "object": "classid codebase data usemap",
        "video": "poster src",
    }.items()
}
"""Which attributes of which tags are links, as Kubernetes counts them."""
_RAW: Final = frozenset(["iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"])
"""In these nothing is a tag but their own end."""
_SPACE: Final = " \t\n\r\f\v"
_BETWEEN: Final = f"{_SPACE}/"
_ENDS_NAME: Final = f"{_SPACE}/>"
_ENDS_ATTRIBUTE: Final = f"{_SPACE}/="
_LONGEST_ENTITY: Final = 40
_ESCAPES: Final = str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "\r": "&#13;"})


class ProxyPath(msgspec.Struct, frozen=True):
    """A request's path: `prefix` is where the place behind begins for the client, `path` what is asked of it."""

    whole: str
    prefix: str
    path: str


def way_of(path: str, *, namespaced: bool) -> ProxyPath:
    """Takes a path apart. What is asked of the place behind is in order, as a shell would have it.

    >>> way_of("/api/v1/nodes/one/proxy/a//../b/", namespaced=False).path
    '/b/'
    >>> way_of("/api/v1/namespaces/x/pods/web/proxy", namespaced=True)
    ProxyPath(whole='/api/v1/namespaces/x/pods/web/proxy', prefix='/api/v1/namespaces/x/pods/web/proxy', path='')
    """
    rest = "/".join(path.strip("/").split("/")[_PARTS[namespaced] :])
    behind = joined("", rest) if rest else ""
    if path.endswith("/") and not behind.endswith("/"):
        behind += "/"
    return ProxyPath(path, path.removesuffix(behind), behind)


def joined(base: str, path: str) -> str:
    """A path below another, without anything that leads up or nowhere.

    >>> joined("/base", "../a/./b"), joined("", "/")
    ('/a/b', '/')
    """
    return "/" + posixpath.normpath(f"/{base}/{path}").lstrip("/")


def escaped(path: str) -> str:
    """A path as Go writes it.

    >>> escaped("/a b/(ä):1")
    '/a%20b/%28%C3%A4%29:1'
    """
    return quote(path, safe=_PLAIN)


class Links(msgspec.Struct, frozen=True):
    """Links of a place that clients find under `prefix`. `host` is its own; `asked_host` the one that clients know."""

    prefix: str
    host: str
    asked_host: str

    def rewritten(self, link: str) -> str:
        """Where it leads through the server; what is elsewhere, or relative, stays.

        >>> links = Links("/api/v1/nodes/one/proxy", "10.0.0.1:80", "cluster")
        >>> [links.rewritten(each) for each in ("/a/?b#c", "http://10.0.0.1:80/a", "https://other/a", "a")]
        ['/api/v1/nodes/one/proxy/a/?b#c', '/api/v1/nodes/one/proxy/a', 'https://other/a', 'a']
        """
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if parts.netloc not in {"", self.host, self.asked_host} or not parts.path.startswith("/"):
            return link
        if parts.netloc != self.asked_host:
            parts = parts._replace(scheme="", netloc="")
        return parts._replace(path=self._through(parts.path)).geturl()

    def _through(self, path: str) -> str:
        if path.startswith(self.prefix):
            return path
        found = joined(self.prefix, path)
        return f"{found}/" if path.endswith("/") and not found.endswith("/") else found

    def page(self, data: bytes) -> bytes:
        r"""A page with its links rewritten; every tag that opens is written as Kubernetes does it.

        >>> Links("/p", "", "").page(b"<A HREF=/x title='y'>z</A><script>'<a href=/x>'</script>")
        b'<a href="/p/x" title="y">z</A><script>\'<a href=/x>\'</script>'
        """
        text = data.decode(errors="surrogateescape")
        return "".join(self._pieces(text)).encode(errors="surrogateescape")

    def _pieces(self, text: str) -> Iterator[str]:
        """Tag by tag. A tag that does not end is none, and nothing behind it is."""
        finder, place = _Finder(text), 0
        while (start := text.find("<", place)) >= 0:
            yield text[place:start]
            first = text[start + 1 : start + 2]
            if first in {"!", "?", "/"}:
                place = finder.end_of_markup(start)
                yield text[start:place]
            elif first.isascii() and first.isalpha():
                name_end = _after(text, start + 1, _ENDS_NAME)
                end = finder.end_of_tag(name_end)
                if end < 0:
                    yield text[start:]
                    return
                name = text[start + 1 : name_end].lower()
                yield self._tag(name, text[name_end:end])
                place = _end_of_raw(name, text, end + 1)
                yield text[end + 1 : place]
            else:
                place = start + 1
                yield "<"
        yield text[place:]

    def _tag(self, name: str, rest: str) -> str:
        links, end = _LINKS.get(name, frozenset()), 0
        written: dict[str, str] = {}
        for key, given, end in _attributes(rest):  # noqa: B007 - the last one is used
            value = _unescaped(given) if "&" in given else given
            written.setdefault(key, self.rewritten(value) if key in links else value)
        attributes = "".join([f' {key}="{value.translate(_ESCAPES)}"' for key, value in written.items()])
        return f"<{name}{attributes}{'/' if rest[end:].rstrip().endswith('/') else ''}>"


class _Finder:
    """Finds what ends markup. Each needle is looked for in each part of the text once, however many tags ask for it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, int] = {}

    def next(self, needle: str, place: int) -> int:
        """Where the needle comes next; the end of the text if it does not. Places may only grow."""
        found = self._found.get(needle, -1)
        if found < place:
            found = self._text.find(needle, place)
            found = self._found[needle] = len(self._text) if found < 0 else found
        return found

    def end_of_markup(self, start: int) -> int:
        """Behind a comment, a declaration or a closing tag."""
        if not self._text.startswith("<!--", start):
            return min(self.next(">", start) + 1, len(self._text))
        short, long = self.next("-->", start + 4), self.next("--!>", start + 4)
        return min(short + 3 if short < long else long + 4, len(self._text))

    def end_of_tag(self, place: int) -> int:
        """Where the bracket is that closes a tag, which is none inside of quotes; -1 if there is none."""
        while True:
            end, quoted = self.next(">", place), min(self.next('"', place), self.next("'", place))
            if end < quoted:
                return end
            if quoted == len(self._text):
                return -1
            place = self.next(self._text[quoted], quoted + 1) + 1
            if place > len(self._text):
                return -1


def _after(text: str, place: int, stops: str) -> int:
    """The place of the first of some characters, or the end."""
    while place < len(text) and text[place] not in stops:
        place += 1
    return place


def _past(text: str, place: int, passed: str) -> int:
    """The first place that has none of some characters, or the end."""
    while place < len(text) and text[place] in passed:
        place += 1
    return place


def _attributes(rest: str) -> Iterator[tuple[str, str, int]]:
    """The attributes of a tag: their names in lower case, their values as they are written, and where they end."""
    place = _past(rest, 0, _BETWEEN)
    while place < len(rest):
        end = _after(rest, place + 1, _ENDS_ATTRIBUTE)
        name, value, at = rest[place:end].lower(), "", _past(rest, end, _SPACE)
        if rest[at : at + 1] == "=":
            at = _past(rest, at + 1, _SPACE)
            quote = rest[at : at + 1]
            if quote in {'"', "'"}:
                closing = rest.find(quote, at + 1)
                closing = len(rest) if closing < 0 else closing
                value, end = rest[at + 1 : closing], closing + 1
            else:
                end = _after(rest, at, _SPACE)
                value = rest[at:end]
        yield name, value, end
        place = _past(rest, end, _BETWEEN)


def _unescaped(value: str) -> str:
    first, *others = value.split("&")
    return first + "".join(map(_character, others))


def _character(text: str) -> str:
    """What begins with an ampersand, which is not there any more."""
    name, semicolon, rest = text[: _LONGEST_ENTITY + 1].partition(";")
    if not semicolon or not name:
        return f"&{text}"
    return html.unescape(f"&{name};") + rest + text[_LONGEST_ENTITY + 1 :]


def _end_of_raw(name: str, text: str, place: int) -> int:
    """Where tags begin to count again."""
    if name == "plaintext":
        return len(text)
    if name not in _RAW:
        return place
    while (found := text.find("</", place)) >= 0:
        place = found + 2
        end = place + len(name)
        if text[place:end].lower() == name and text[end : end + 1] in {*_SPACE, "/", ">"}:
            return found
    return len(text)
