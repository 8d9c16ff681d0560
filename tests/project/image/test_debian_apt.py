"""Mirrors and proxies come from options, from apt's own configuration, or from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from yarl import URL

from navarch.errors import ImageError
from navarch.project.image.debian.apt_configuration import AptConfiguration, AptSource, read_apt_configuration
from navarch.project.image.debian.mirrors import DEBIAN, DEBIAN_SECURITY, Mirrors, Proxies, choose_mirrors

DEB822 = """\
# of the machine's image
Types: deb deb-src
URIs: http://mirror.example.com/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example.com/debian-security
Suites: bookworm-security
Components: main

Types: deb
Enabled: no
URIs: http://disabled.example.com/debian
Suites: trixie
Components: main

Types: deb-src
URIs: http://sources.example.com/debian
Suites: trixie
Components: main
"""
ONE_LINE = """\
# deb http://commented.example.com/debian bookworm main
deb [arch=amd64 signed-by=/a.gpg] http://one.example.com/debian bullseye main contrib # a remark
deb-src http://sources.example.com/debian bullseye main
deb http://one.example.com/security bullseye/updates main
deb cdrom:[Debian]/ bullseye main
nonsense
"""


def _apt(folder: Path, files: Mapping[str, str]) -> AptConfiguration:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return read_apt_configuration(folder)


def test_sources_are_read_in_both_formats(tmp_path: Path) -> None:
    """Files of other names, disabled sources and sources of source code do not count."""
    apt = _apt(
        tmp_path,
        {
            "sources.list": ONE_LINE,
            "sources.list.d/debian.sources": DEB822,
            "sources.list.d/old.list.disabled": ONE_LINE,
            "sources.list.d/bad.sources": "no field at all",
        },
    )
    assert apt.sources == (
        AptSource(uri="http://one.example.com/debian", suite="bullseye", components=("main", "contrib")),
        AptSource(uri="http://one.example.com/security", suite="bullseye/updates", components=("main",)),
        AptSource(uri="cdrom:[Debian]/", suite="bullseye", components=("main",)),
        AptSource(uri="http://mirror.example.com/debian", suite="bookworm", components=("main", "contrib")),
        AptSource(uri="http://mirror.example.com/debian", suite="bookworm-updates", components=("main", "contrib")),
        AptSource(uri="http://mirror.example.com/debian-security", suite="bookworm-security", components=("main",)),
    )


def test_machine_without_apt_has_an_empty_configuration(tmp_path: Path) -> None:
    """Then Debian's own mirrors are taken."""
    apt = read_apt_configuration(tmp_path / "none")
    assert apt == AptConfiguration()
    assert choose_mirrors(None, None, apt) == Mirrors(main=DEBIAN, security=DEBIAN_SECURITY)


def test_mirror_of_apt_is_taken_for_any_suite(tmp_path: Path) -> None:
    """apt may be of another release than the image: its mirror has all of them. Options win."""
    apt = _apt(tmp_path, {"sources.list.d/debian.sources": DEB822})
    found = choose_mirrors(None, None, apt)
    assert found == Mirrors(
        main="http://mirror.example.com/debian", security="http://mirror.example.com/debian-security"
    )
    chosen = choose_mirrors("https://own.example.com/debian/", None, apt)
    assert chosen == Mirrors(
        main="https://own.example.com/debian", security="http://mirror.example.com/debian-security"
    )
    assert choose_mirrors(None, "none", apt).security is None


@pytest.mark.parametrize(
    ("uri", "suite", "components"),
    [
        ("https://download.example.com/linux/debian", "bookworm", "stable"),  # another archive's component
        ("http://apt.example.com/debian", "bookworm-pgdg", "main"),
        ("http://archive.example.com/ubuntu", "jammy", "main"),
        ("file:/srv/debian", "bookworm", "main"),
        ("cdrom:[Debian]/", "bookworm", "main"),
        ("mirror+http://example.com/list", "bookworm", "main"),
    ],
)
def test_archives_of_others_are_not_mirrors_of_debian(uri: str, suite: str, components: str) -> None:
    """A source counts if it has the component main of a release of Debian, over HTTP."""
    apt = AptConfiguration(sources=(AptSource(uri=uri, suite=suite, components=(components,)),))
    assert choose_mirrors(None, None, apt).main == DEBIAN


def test_mirror_with_debian_in_its_path_is_preferred() -> None:
    """Archives with additions for Debian's releases use its names for suites, too."""
    sources = [("https://extras.example.com/", "trixie"), ("https://mirror.example.com/debian", "trixie")]
    apt = AptConfiguration(
        sources=tuple(AptSource(uri=uri, suite=suite, components=("main",)) for uri, suite in sources)
    )
    assert choose_mirrors(None, None, apt).main == "https://mirror.example.com/debian"


@pytest.mark.parametrize("mirror", ["deb.debian.org/debian", "ftp://ftp.example.com/debian", "http://", "/srv/debian"])
def test_mirror_of_another_form_is_refused(mirror: str) -> None:
    """The error shows a mirror that would do."""
    with pytest.raises(ImageError, match=r"expected a mirror such as https://deb.debian.org/debian, got"):
        choose_mirrors(mirror, None, AptConfiguration())


APT_CONF = """\
// comment
Acquire::http::Proxy "http://one.example.com:3128"; # another
Acquire {
  http { Proxy::direct.example.com "DIRECT"; };
  /* https::Proxy "http://commented.example.com"; */
  https { Proxy "http://two.example.com:3128/"; };
};
APT::Architectures { "amd64"; "arm64"; };
#clear Acquire::ftp;
Broken "never ends
"""


def test_proxies_of_apt_are_read_in_both_notations(tmp_path: Path) -> None:
    """Options may be nested or written in one, files of other endings are not apt's."""
    apt = _apt(
        tmp_path,
        {
            "apt.conf.d/99proxy": APT_CONF,
            "apt.conf.d/10proxy.conf": 'Acquire::HTTP::proxy "http://replaced.example.com";',
            "apt.conf.d/99proxy.bak": 'Acquire::http::Proxy "http://backup.example.com";',
        },
    )
    proxies = Proxies(apt=apt)
    assert proxies.proxy_for(URL("http://deb.example.com/")) == "http://one.example.com:3128"
    assert proxies.proxy_for(URL("https://deb.example.com/")) == "http://two.example.com:3128/"
    assert proxies.proxy_for(URL("http://direct.example.com/")) is None


def test_proxy_is_the_options_then_apts_then_the_environments() -> None:
    """Each is asked only if those before it say nothing."""
    apt = AptConfiguration(proxies={"http::proxy": "http://apt.example.com"})
    environment = {"http_proxy": "http://environment.example.com", "https_proxy": "secure.example.com:8080"}
    url, secure = URL("http://deb.example.com/"), URL("https://deb.example.com/")
    both = Proxies(apt=apt, environment=environment)
    assert both.proxy_for(url) == "http://apt.example.com"
    assert both.proxy_for(secure) == "http://apt.example.com"  # apt's default for https is what it has for http
    assert Proxies(option="http://option.example.com", apt=apt).proxy_for(url) == "http://option.example.com"
    assert Proxies(apt=apt, environment={"no_proxy": "*"}).proxy_for(url) is None
    assert Proxies(environment=environment).proxy_for(url) == "http://environment.example.com"
    assert Proxies(environment=environment).proxy_for(secure) == "http://secure.example.com:8080"
    assert Proxies(option="direct", apt=apt, environment=environment).proxy_for(url) is None
    assert Proxies().proxy_for(url) is None


@pytest.mark.parametrize(
    ("excepted", "direct"),
    [
        ("deb.example.com", True),
        ("example.com", True),
        (".example.com", True),
        ("*.example.com", True),
        ("*", True),
        ("localhost, DEB.example.com", True),
        ("le.com", False),
        ("other.example.com", False),
        ("", False),
    ],
)
def test_no_proxy_names_hosts_and_domains(excepted: str, *, direct: bool) -> None:
    """A domain is meant with all hosts in it."""
    proxies = Proxies(environment={"http_proxy": "http://proxy.example.com", "no_proxy": excepted})
    assert (proxies.proxy_for(URL("http://deb.example.com/")) is None) == direct


@pytest.mark.parametrize(("host", "direct"), [("10.1.2.3", True), ("11.1.2.3", False)])
def test_no_proxy_names_networks(host: str, *, direct: bool) -> None:
    """An address is compared with networks."""
    proxies = Proxies(environment={"http_proxy": "http://proxy.example.com", "no_proxy": "10.0.0.0/8"})
    assert (proxies.proxy_for(URL(f"http://{host}/")) is None) == direct


def test_proxy_of_another_kind_is_refused_without_its_password() -> None:
    """SOCKS is not spoken; the error does not show what nobody may see."""
    with pytest.raises(ImageError, match="expected an HTTP proxy") as caught:
        Proxies(option="socks5://user:secret@proxy.example.com").proxy_for(URL("http://deb.example.com/"))
    assert "secret" not in str(caught.value)
