"""Resolution: from names to all packages that an image needs, without those that only package management needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from navarch.errors import ImageError
from navarch.project.image.debian.package_index import Candidate, DebianPackage, PackageIndex
from navarch.project.image.debian.relations import Relation

LEFT_OUT: Final = {
    "adduser": "maintainer scripts create users with it; the builder writes /etc/passwd",
    "awk": "base-files' maintainer script uses it",
    "debconf": "asks questions while a package is configured",
    "debconf-2.0": "asks questions while a package is configured",
    "dpkg": "installs packages; an image is replaced as a whole",
    "init-system-helpers": "starts services; the container's runtime does that",
    "install-info": "indexes manuals, which the image does not have",
    "lsb-base": "start scripts use it; a container has none",
    "openssl": "ca-certificates' maintainer script uses the command; the builder joins the bundle itself",
    "passwd": "maintainer scripts create users with it",
    "perl": "tools of administrators are written in it",
    "perl-base": "maintainer scripts are written in it",
    "readline-common": "key bindings of terminals",
    "sysvinit-utils": "start scripts use it",
    "tar": "unpacks packages",
}
"""Packages that are not followed, and why: an image without package management runs without them. A package of this
list that is asked for by name is taken."""


def resolve_packages(index: PackageIndex, names: Iterable[str]) -> tuple[DebianPackage, ...]:
    """Returns the packages of these names and all that they depend on, in the order of their names.

    Of alternatives it takes the first that is there already, else the first that the index has; of packages that provide
    a virtual one, the first by name. The result depends on the set of names alone. Raises `ImageError` for a package
    that does not exist, a dependency that nothing satisfies, and packages that exclude each other.
    """
    asked = sorted(set(names))
    chosen: dict[str, Candidate] = {}
    waiting: deque[Candidate] = deque()
    for name in asked:
        found = index.candidate(name)
        if found is None:
            raise ImageError(
                f"expected a Debian package {name} for {index.architecture}, got none of that name in the suite"
            )
        chosen[name] = found
        waiting.append(found)
    while waiting:
        needing = waiting.popleft()
        for alternatives in needing.depends:
            found = _choose(index, alternatives, chosen, needing)
            if found is not None and found.name not in chosen:
                chosen[found.name] = found
                waiting.append(found)
    _check_conflicts(chosen.values())
    return tuple(sorted(each.package for each in chosen.values()))


def _choose(
    index: PackageIndex, alternatives: tuple[Relation, ...], chosen: dict[str, Candidate], needing: Candidate
) -> Candidate | None:
    """Returns the package that satisfies one of the alternatives; None if the image does without."""
    usable = [each for each in alternatives if each.is_for(index.architecture)]
    for relation in usable:
        there = chosen.get(relation.name)
        if there is not None and there.satisfies(relation):
            return there
    for relation in usable:
        if any(each.satisfies(relation) for each in chosen.values()) or relation.name in LEFT_OUT:
            return None
        found = _find(index, relation)
        if found is not None:
            return found
    wanted = " | ".join(map(str, alternatives))
    raise ImageError(
        f"the Debian package {needing.name} {needing.package.version}: expected {wanted} for {index.architecture}, got no "
        f"package that satisfies it; the mirror may be in the middle of an update: run the command again, or name another "
        f"--mirror"
    )


def _find(index: PackageIndex, relation: Relation) -> Candidate | None:
    found = index.candidate(relation.name)
    if found is not None and found.satisfies(relation):
        return found
    return next((each for each in index.providers(relation.name) if each.satisfies(relation)), None)


def _check_conflicts(chosen: Iterable[Candidate]) -> None:
    """Raises `ImageError` if a package excludes another. One that provides what it conflicts with means others."""
    packages = sorted(chosen, key=lambda each: each.name)
    for each in packages:
        for relation in each.conflicts:
            for other in packages:
                if other is not each and other.satisfies(relation):
                    raise ImageError(
                        f"expected packages that can be in one image, got {each.name} {each.package.version}, which "
                        f"conflicts with {relation}, and {other.name} {other.package.version}; leave one of them out"
                    )
