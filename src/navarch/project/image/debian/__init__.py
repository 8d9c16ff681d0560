"""Bases of images from Debian packages, without root, apt, chroot or maintainer scripts.

`archive-keys.gpg` has the keys of Debian 12 and 13, from Debian's package debian-archive-keyring 2023.3+deb12u2:

| key | fingerprint |
|---|---|
| 12, archive | B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8 |
| 12, security | 05AB90340C0C5E797F44A8C8254CF3B5AEC0A8F0 |
| 12, stable release | 4D64FEC119C2029067D6E791F8D2585B8783D481 |
| 13, archive | 04B54C3CDCA79751B16BC6B5225629DF75B188BD |
| 13, security | 5E04A1E3223A19A20706E20F9904613D4CCE68C6 |
| 13, stable release | 41587F7DB8C774BCCF131416762F67A0B2C39DE4 |
"""

from navarch.project.image.debian.archive import DebianArchive, DebianOptions
from navarch.project.image.debian.base_packages import DEFAULT_SUITE, base_packages, glibc_version, python_version
from navarch.project.image.debian.base_tree import NONROOT, base_tree
from navarch.project.image.debian.package_index import DebianPackage

__all__ = [
    "DEFAULT_SUITE",
    "NONROOT",
    "DebianArchive",
    "DebianOptions",
    "DebianPackage",
    "base_packages",
    "base_tree",
    "glibc_version",
    "python_version",
]
