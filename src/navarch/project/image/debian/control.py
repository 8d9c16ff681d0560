"""Debian's control files: paragraphs of fields, `Name: value`, with continued lines."""

from __future__ import annotations

from navarch.errors import ImageError


def parse_paragraph(text: str, *, where: str) -> dict[str, str]:
    r"""Returns the fields of one paragraph; a continued value keeps its line breaks.

    Raises `ImageError` for a line that is neither a field nor a continuation, and for a field that comes twice.

    >>> parse_paragraph("Package: libc6\nDepends: libgcc-s1,\n libcrypt1\n", where="libc6.deb")
    {'Package': 'libc6', 'Depends': 'libgcc-s1,\nlibcrypt1'}
    """
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] in " \t":
            if not name:
                raise ImageError(
                    f"{where}: expected `Name: value`, got a continued line without a field: {line[:80]!r}"
                )
            fields[name] += "\n" + line.strip()
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or name in fields:
            raise ImageError(f"{where}: expected `Name: value`, each name once, got {line[:80]!r}")
        fields[name] = value.strip()
    return fields


def parse_paragraphs(text: str, *, where: str) -> list[dict[str, str]]:
    """Returns the paragraphs, which empty lines separate."""
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    parsed = (parse_paragraph("\n".join(lines), where=where) for lines in paragraphs)
    return [fields for fields in parsed if fields]
