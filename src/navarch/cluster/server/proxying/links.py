"""Links of pages behind the server, so that they lead to the same place through it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec

from navarch.cluster.server.proxying.paths import joined

__all__ = ["Links"]

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
_TAG: Final = re.compile(
    r"""<!--.*?(?:--!?>|\Z) | <[!?/][^>]*+>? | <(?P<name>[a-zA-Z][^\s/>]*)(?P<rest>(?:[^>"']|"[^"]*+"|'[^']*+')*+)>""",
    re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE: Final = re.compile(r"""([^\s/>][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)?))?""")
_ENTITY: Final = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "\r": "&#13;"})


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
        place = 0
        while found := _TAG.search(text, place):
            yield text[place : found.start()]
            place = found.end()
            if found["name"] is None:
                yield found[0]
                continue
            name = found["name"].lower()
            yield self._tag(name, found["rest"])
            end = _end_of_raw(name, text, place)
            yield text[place:end]
            place = end
        yield text[place:]

    def _tag(self, name: str, rest: str) -> str:
        links, end = _LINKS.get(name, frozenset()), 0
        written: dict[str, str] = {}
        for found in _ATTRIBUTE.finditer(rest):
            key, end = found[1].lower(), found.end()
            value = _ENTITY.sub(lambda entity: html.unescape(entity[0]), found[2] or found[3] or found[4] or "")
            written.setdefault(key, self.rewritten(value) if key in links else value)
        attributes = "".join(f' {key}="{value.translate(_ESCAPES)}"' for key, value in written.items())
        return f"<{name}{attributes}{'/' if rest[end:].rstrip().endswith('/') else ''}>"


def _end_of_raw(name: str, text: str, place: int) -> int:
    """Where tags begin to count again."""
    if name == "plaintext":
        return len(text)
    if name not in _RAW:
        return place
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, place)
    return found.start() if found else len(text)
