"""Resolution finds all packages that an image needs, whatever their relations look like, and no others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from navarch.errors import ImageError
from navarch.project.image.debian.base_packages import base_packages, glibc_version, python_version
from navarch.project.image.debian.package_index import DebianPackage, PackageIndex
from navarch.project.image.debian.resolution import LEFT_OUT, resolve_packages


def _paragraph(name: str, version: str = "1.0-1", architecture: str = "amd64", **fields: str) -> str:
    others = "".join(f"{field.replace('_', '-')}: {value}\n" for field, value in fields.items())
    return (
        f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n{others}"
        f"Filename: pool/main/{name}_{version.replace(':', '%3a')}.deb\nSize: 100\nSHA256: {'a' * 64}\n"
    ).replace("%3a", "")


def _index(*paragraphs: str, architecture: str = "amd64", later: Iterable[str] = ()) -> PackageIndex:
    suites = [("main", "\n".join(paragraphs).encode()), ("security", "\n".join(later).encode())]
    return PackageIndex(architecture, suites)


def _names(index: PackageIndex, *names: str) -> list[str]:
    return [each.name for each in resolve_packages(index, names)]


def test_resolution_follows_depends_and_pre_depends() -> None:
    """Everything that is needed, directly or not, is there once, in the order of names."""
    index = _index(
        _paragraph("app", Depends="libb, liba (>= 1.0)"),
        _paragraph("liba", Pre_Depends="libc6"),
        _paragraph("libb", Depends="liba,\n libc6"),
        _paragraph("libc6", Recommends="manual", Suggests="more"),
        _paragraph("manual"),
    )
    assert _names(index, "app") == ["app", "liba", "libb", "libc6"]


def test_resolution_does_not_depend_on_the_order_of_names() -> None:
    """The same names give the same packages, however they are written."""
    index = _index(
        _paragraph("app", Depends="one | two"), _paragraph("one"), _paragraph("two"), _paragraph("zoo", Depends="two")
    )
    assert resolve_packages(index, ("app", "zoo")) == resolve_packages(index, ("zoo", "app", "zoo"))


def test_resolution_takes_the_newest_version_of_all_suites() -> None:
    """A security update replaces the package of the release; an older one does not."""
    index = _index(
        _paragraph("liba", "1.0-1"),
        _paragraph("libb", "2.0-1"),
        later=[_paragraph("liba", "1.0-1+deb13u1"), _paragraph("libb", "2.0-1~rc1")],
    )
    found = resolve_packages(index, ("liba", "libb"))
    assert [(each.name, each.version) for each in found] == [("liba", "1.0-1+deb13u1"), ("libb", "2.0-1")]


def test_resolution_takes_the_first_alternative_that_exists() -> None:
    """An alternative that the suite lacks, or whose version does not fit, is passed over."""
    index = _index(_paragraph("app", Depends="gone | old (>= 2) | good"), _paragraph("old"), _paragraph("good"))
    assert _names(index, "app") == ["app", "good"]


def test_resolution_prefers_an_alternative_that_is_there() -> None:
    """A dependency that another package satisfies already brings nothing new."""
    index = _index(_paragraph("app", Depends="first | second"), _paragraph("first"), _paragraph("second"))
    assert _names(index, "app", "second") == ["app", "second"]


@pytest.mark.parametrize(
    ("provides", "depends", "satisfied"),
    [
        ("mail", "mail", True),
        ("mail (= 2)", "mail (>= 1)", True),
        ("mail (= 2)", "mail (>= 3)", False),
        ("mail", "mail (>= 1)", False),  # a name without a version has none that could fit
        ("other, mail", "gone | mail", True),
        ("mailer", "mail", False),
    ],
)
def test_resolution_finds_who_provides_a_virtual_package(provides: str, depends: str, *, satisfied: bool) -> None:
    """A virtual package is one that others provide, with a version or without."""
    index = _index(_paragraph("app", Depends=depends), _paragraph("postman", Provides=provides))
    if satisfied:
        assert _names(index, "app") == ["app", "postman"]
    else:
        with pytest.raises(ImageError, match=r"the Debian package app 1.0-1: expected .*mail"):
            _names(index, "app")


def test_resolution_takes_the_first_provider_by_name() -> None:
    """Of several providers always the same one is taken; one that is there already wins."""
    index = _index(
        _paragraph("app", Depends="mail"),
        _paragraph("postman", Provides="mail"),
        _paragraph("courier", Provides="mail"),
    )
    assert _names(index, "app") == ["app", "courier"]
    assert _names(index, "app", "postman") == ["app", "postman"]


@pytest.mark.parametrize(("architecture", "expected"), [("amd64", ["app", "liba"]), ("arm64", ["app", "libb"])])
def test_resolution_heeds_architectures(architecture: str, expected: list[str]) -> None:
    """A relation that names another architecture is for others; `any` is for all."""
    index = _index(
        _paragraph("app", architecture="all", Depends="liba:amd64 | libb:any"),
        _paragraph("liba", architecture=architecture),
        _paragraph("libb", architecture=architecture),
        architecture=architecture,
    )
    assert _names(index, "app") == expected


def test_resolution_takes_no_package_of_another_architecture() -> None:
    """A list that has packages of other architectures does not confuse it."""
    index = _index(_paragraph("app", "2.0", architecture="i386"), _paragraph("app", "1.0"))
    assert [each.version for each in resolve_packages(index, ("app",))] == ["1.0"]


def test_resolution_leaves_out_package_management() -> None:
    """dpkg, debconf and Perl come only if somebody asks for them by name."""
    index = _index(
        _paragraph("app", Depends="debconf (>= 0.5) | debconf-2.0, perl:any, libc6", Pre_Depends="dpkg (>= 1.17)"),
        _paragraph("debconf", Depends="perl"),
        _paragraph("dpkg", Depends="tar"),
        _paragraph("libc6"),
        _paragraph("perl"),
    )
    assert _names(index, "app") == ["app", "libc6"]
    assert _names(index, "app", "dpkg") == ["app", "dpkg", "libc6"]
    assert all(reason for reason in LEFT_OUT.values())


def test_resolution_names_a_package_that_does_not_exist() -> None:
    """A misspelt name is an error that shows it, with the architecture."""
    with pytest.raises(ImageError, match="expected a Debian package memcache for arm64, got none"):
        _names(_index(_paragraph("memcached", architecture="arm64"), architecture="arm64"), "memcache")


def test_resolution_refuses_packages_that_exclude_each_other() -> None:
    """Conflicts and Breaks hold; a package that provides what it conflicts with does not exclude itself."""
    exclusive = _paragraph("exim", Provides="mail", Conflicts="mail")
    assert _names(_index(exclusive), "exim") == ["exim"]
    index = _index(exclusive, _paragraph("postman", Provides="mail"))
    with pytest.raises(ImageError, match=r"got exim 1.0-1, which conflicts with mail, and postman"):
        _names(index, "exim", "postman")
    index = _index(_paragraph("new", Breaks="old (<< 2)"), _paragraph("old", "1.9"))
    with pytest.raises(ImageError, match=r"conflicts with old \(<< 2\), and old 1.9"):
        _names(index, "new", "old")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Size: 100", "Size: many", "expected a package's fields"),
        ("Size: 100\n", "", "expected the field Size"),
        ("Size: 100", "Size: -1", "expected a path below the mirror, a SHA-256 and a size"),
        ("pool/main/", "../../etc/", "expected a path below the mirror"),
        ("pool/main/", "https://elsewhere.example.com/", "expected a path below the mirror"),
        ("SHA256: aaaa", "SHA256: ZZZZ", "expected a path below the mirror, a SHA-256"),
        ("Version: 1.0-1", "Version: 1_0", "expected a Debian version"),
        ("Architecture", "Architecture: amd64\nArchitecture", "each name once"),
    ],
)
def test_index_with_a_bad_package_names_it(old: str, new: str, expected: str) -> None:
    """What is wrong in the list of packages is reported with the suite's and the package's name."""
    index = _index(_paragraph("app").replace(old, new))
    with pytest.raises(ImageError, match=expected):
        _names(index, "app")


def _package(name: str, version: str) -> DebianPackage:
    return DebianPackage(name=name, version=version, architecture="amd64", path="pool/a.deb", sha256="a" * 64, size=1)


def test_base_knows_its_python_and_its_c_library() -> None:
    """Wheels are chosen by these two versions."""
    packages = [_package("libc6", "2.41-12+deb13u4"), _package("python3.13-minimal", "3.13.5-2")]
    assert python_version(packages) == (3, 13)
    assert glibc_version(packages) == (2, 41)
    with pytest.raises(ImageError, match=r"expected a package such as python3\.13-minimal"):
        python_version(packages[:1])
    with pytest.raises(ImageError, match="expected the package libc6"):
        glibc_version(packages[1:])


def test_base_of_an_unknown_suite_is_refused() -> None:
    """The error names the suites that there are."""
    assert "python3.11-minimal" in base_packages("bookworm")
    with pytest.raises(ImageError, match="expected a Debian suite of trixie, bookworm, got 'sid'"):
        base_packages("sid")
