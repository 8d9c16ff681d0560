"""apt's own configuration of this machine: where its packages come from, and through which proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.project.image.debian.control import parse_paragraphs

_TOKEN: Final = re.compile(
    r"//[^\n]*|#(?!clear)[^\n]*|/\*.*?\*/"  # comments
    r"|(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<sign>[{};])|(?P<word>[^\s{};\"]+)",
    re.DOTALL,
)
_ONE_LINE: Final = re.compile(r"deb\s+(?:\[[^\]]*\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>(?:\s+\S+)*)\s*")


class AptSource(msgspec.Struct, frozen=True, kw_only=True):
    """A suite that apt reads packages from."""

    uri: str
    suite: str
    components: tuple[str, ...]


class AptConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """What apt is configured to do; empty on a machine without apt."""

    sources: tuple[AptSource, ...] = ()
    proxies: dict[str, str] = {}
    """By what comes after `Acquire::` in small letters, without the last `::proxy`: `http`, `https`, `http::proxy::host`."""

    def proxy(self, scheme: str, host: str) -> str | None:
        """Returns the proxy for a host, `direct` for none in spite of others, None if apt has no opinion.

        As in apt, what is set for http counts for https, too, unless that has its own.
        """
        schemes = ("https", "http") if scheme == "https" else ("http",)
        keys = [f"{each}::proxy{ending}".lower() for each in schemes for ending in (f"::{host}", "")]
        return next((self.proxies[key] for key in keys if self.proxies.get(key)), None)


def read_apt_configuration(folder: Path = Path("/etc/apt")) -> AptConfiguration:
    """Reads apt's folder. Files that cannot be read or understood count as absent: apt complains of them itself."""
    sources = [*_entries(folder, "sources.list"), *_entries(folder, "sources.list.d/*")]
    options: dict[str, str] = {}
    for file in [*_entries(folder, "apt.conf.d/*"), *_entries(folder, "apt.conf")]:
        if file.suffix in {"", ".conf"}:
            options |= dict(_options(_text(file)))
    proxies = {
        key.removeprefix("acquire::"): value
        for key, value in options.items()
        if key.startswith(("acquire::http::proxy", "acquire::https::proxy"))
    }
    return AptConfiguration(sources=tuple(each for file in sources for each in _sources(file)), proxies=proxies)


def _entries(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _sources(file: Path) -> Iterator[AptSource]:
    if file.suffix == ".list":
        for line in _text(file).splitlines():
            matched = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
            if matched is not None:
                components = tuple(matched["components"].split())
                yield AptSource(uri=matched["uri"], suite=matched["suite"], components=components)
    elif file.suffix == ".sources":
        try:
            paragraphs = parse_paragraphs(_text(file), where=str(file))
        except ImageError:
            return
        for fields in paragraphs:
            yield from _paragraph_sources({name.lower(): value for name, value in fields.items()})


def _paragraph_sources(fields: dict[str, str]) -> Iterator[AptSource]:
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false", "0"}:
        return
    components = tuple(fields.get("components", "").split())
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield AptSource(uri=uri, suite=suite, components=components)


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yields the options of apt's configuration language by their full names in small letters.

    >>> list(_options('Acquire { http { Proxy "http://a:1"; }; }; APT::Color "1";'))
    [('acquire::http::proxy', 'http://a:1'), ('apt::color', '1')]
    """
    scopes: list[str] = []
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["word"] or token["quoted"]:
            words.append(token["word"] or token["quoted"][1:-1])
        elif token["sign"] == "{":
            scopes.append(words[0].lower() if words else "")
            words = []
        elif token["sign"] == "}":
            scopes, words = scopes[:-1], []
        elif token["sign"] == ";":
            if len(words) == 2:
                yield "::".join([*filter(None, scopes), words[0].lower()]), words[1]
            words = []
