"""The SBOM of an image, in SPDX 2.3."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from navarch._version import __version__
from navarch.project.image.lock_file import LockedPlatform
from navarch.project.image.project_metadata import ProjectMetadata

SPDX: Final = "application/spdx+json"
_EXPRESSION: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9.+-]*-[A-Za-z0-9.+-]+|MIT|ISC|Zlib|Unlicense|0BSD|AND|OR|WITH|[() ])+"
)
_ROOT: Final = "SPDXRef-Image"


def spdx_document(
    metadata: ProjectMetadata,
    platform: str,
    locked: LockedPlatform,
    licenses: Mapping[str, str],
    *,
    base: str,
    created: str,
) -> bytes:
    """Returns the document: the image, and the packages in it with addresses, digests and known licences.

    It follows from the lock and the project's metadata, not from the code: code that changes between two commits changes
    no SBOM.
    """
    packages = [*_base(base, locked), *_wheels(locked, licenses)]
    root: dict[str, Any] = {
        **_package(_ROOT, metadata.name, metadata.version, metadata.license_expression),
        "primaryPackagePurpose": "CONTAINER",
    }
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{metadata.name} {platform}",
        "creationInfo": {"created": created, "creators": [f"Tool: navarch-{__version__}"]},
        "packages": [root, *packages],
        "relationships": [
            _relationship("SPDXRef-DOCUMENT", "DESCRIBES", _ROOT),
            *(_relationship(_ROOT, "CONTAINS", each["SPDXID"]) for each in packages),
        ],
    }
    digest = hashlib.sha256(msgspec.json.encode(document)).hexdigest()
    return msgspec.json.encode({**document, "documentNamespace": f"https://spdx.org/spdxdocs/navarch-{digest}"})


def _base(base: str, locked: LockedPlatform) -> Iterator[dict[str, Any]]:
    if locked.base:
        found = _package("SPDXRef-Base", base, locked.base, "")
        yield {**found, "checksums": [_sha256(locked.base.removeprefix("sha256:"))]}
    release = base.partition(":")[2]
    for each in sorted(locked.packages):
        address = f"pkg:deb/debian/{quote(each.name)}@{quote(each.version)}?arch={each.architecture}&distro={release}"
        found = _package(_identifier("deb", each.name), each.name, each.version, "")
        yield {**found, **_located(address, each.sha256), "supplier": "Organization: Debian"}


def _wheels(locked: LockedPlatform, licenses: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for each in sorted(locked.wheels):
        found = _package(_identifier("pypi", each.name), each.name, each.version, licenses.get(each.name, ""))
        address = f"pkg:pypi/{each.name}@{quote(each.version)}"
        yield {**found, **_located(address, each.sha256), "packageFileName": each.filename}


def _package(identifier: str, name: str, version: str, license_text: str) -> dict[str, Any]:
    return {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license_text if _is_expression(license_text) else "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def _located(address: str, sha256: str) -> dict[str, Any]:
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": address}
    return {"checksums": [_sha256(sha256)], "externalRefs": [reference]}


def _sha256(value: str) -> dict[str, str]:
    return {"algorithm": "SHA256", "checksumValue": value}


def _relationship(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def _identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", lambda found: f"-{ord(found[0]):x}-", name)


def _is_expression(text: str) -> bool:
    """Returns whether the text is an SPDX expression; older wheels have any text there, such as `BSD License`."""
    return len(text) < 200 and _EXPRESSION.fullmatch(text) is not None
