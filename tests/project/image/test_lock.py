"""`navarch image lock`: what an image is built from, by digest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from navarch.errors import ConfigError, ImageError
from navarch.oci.documents import Platform
from navarch.project.image.lock import differing_versions, lock_image
from navarch.project.image.lock_file import ImageLock, inputs_of
from navarch.project.image.pip import PipOptions
from navarch.project.image.targets import PythonTarget
from navarch.project.image.wheel_resolver import resolve
from project.image.image_projects import MINOR, ImageProject, new_image_project, write_base, write_wheel


@pytest.fixture
def made(tmp_path: Path) -> ImageProject:
    """A project with a lock that no pip has resolved."""
    made = new_image_project(tmp_path)
    made.lock_by_hand()
    return made


def test_lock_pins_the_wheels_of_each_platform(tmp_path: Path) -> None:
    """Each wheel has the digest of its file; markers are those of the image's Python and machine, not of this one."""
    made = new_image_project(tmp_path)
    locked = made.lock()
    assert locked == ImageLock.read(made.project, inputs_of(made.project))
    for platform, machine in (("linux/amd64", "x86_64"), ("linux/arm64", "aarch64")):
        wheels = {each.name: each for each in locked.platforms[platform].wheels}
        assert set(wheels) == {"cachelib", "speedy"}
        assert wheels["speedy"].filename.endswith(f"{machine}.whl")
        for each in wheels.values():
            assert each.sha256 == hashlib.sha256((made.wheels / each.filename).read_bytes()).hexdigest()
    text = (made.root / "image.lock").read_text()
    assert str(tmp_path) not in text
    assert made.lock_by_hand() == locked
    assert (made.root / "image.lock").read_text() == text


def test_markers_are_those_of_the_target(tmp_path: Path) -> None:
    """A dependency for another Python or machine than the one that runs pip is taken or left as the image needs it."""
    requires = ['new; python_version >= "3.40"', 'arm; platform_machine == "aarch64"', 'old; python_version < "3.40"']
    write_wheel(tmp_path, "top", "1", {"top.py": ""}, requires=requires)
    for name in ("new", "arm", "old"):
        write_wheel(tmp_path, name, "1", {f"{name}.py": ""})
    target = PythonTarget(platform=Platform.parse("linux/arm64"), python="3.40.1", glibc="2.41")
    found = resolve(["top"], target, PipOptions(no_index=True, find_links=(str(tmp_path),)))
    assert [each.name for each in found] == ["arm", "new", "top"]


def test_every_glibc_up_to_the_base_has_its_tag() -> None:
    """pip takes wheels by these tags alone: with a gap it would take an older release."""
    target = PythonTarget(platform=Platform.parse("linux/amd64"), python="3.13.5", glibc="2.18")
    assert target.tags()[:3] == ["manylinux_2_18_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]
    assert target.tags()[-2:] == ["manylinux_2_5_x86_64", "manylinux1_x86_64"]
    arm = PythonTarget(platform=Platform.parse("linux/arm64"), python="3.13.5", glibc="2.18")
    assert arm.tags() == ["manylinux_2_18_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]


def test_missing_wheel_names_package_platform_and_remedy(tmp_path: Path) -> None:
    """A wheel that only one platform has is not silently left out of the other's image."""
    made = new_image_project(tmp_path)
    (
        made.wheels / f"speedy-1.1-cp{MINOR.replace('.', '')}-cp{MINOR.replace('.', '')}-manylinux_2_28_aarch64.whl"
    ).unlink()
    with pytest.raises(ImageError) as raised:
        made.lock()
    text = str(raised.value)
    for part in ("no wheel of speedy>=1", "linux/arm64", "--find-links", "[tool.navarch.build] platforms"):
        assert part in text
    assert not (made.root / "image.lock").exists()


def test_versions_that_differ_between_platforms_are_reported(made: ImageProject) -> None:
    """Silence would hide that one platform has an older release."""
    locked = made.lock_by_hand()
    assert differing_versions(locked) == []
    text = locked.text().replace(
        '"speedy","version":"1.1","filename":"speedy-1.1', '"speedy","version":"1.0","filename":"speedy-1.0', 1
    )
    (made.root / "image.lock").write_text(text)
    changed = ImageLock.read(made.project, inputs_of(made.project))
    assert differing_versions(changed) == ["speedy: 1.0 for linux/amd64, 1.1 for linux/arm64"]


def test_stale_and_missing_locks_are_refused(made: ImageProject) -> None:
    """A build never takes something else than pyproject.toml asks for."""
    pyproject = made.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("cachelib>=1", "cachelib>=2"))
    with pytest.raises(
        ImageError, match=r"image.lock is stale: pyproject.toml has changed since; run: navarch image lock"
    ):
        made.build()
    (made.root / "image.lock").unlink()
    with pytest.raises(ImageError, match=r"expected image.lock in the project, got none; run: navarch image lock"):
        made.build()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('{\n  "version"', '<<<<<<< ours\n{\n  "version"', "expected a lock as it was written"),
        ('"version": 1', '"version": 9', "expected version 1, got 9"),
        ('"name":"cachelib"', '"name":"other"', "expected a wheel of other, got cachelib-2.0-py3-none-any.whl"),
        ('"filename":"cachelib-2.0-py3-none-any.whl"', '"filename":"../../x.whl"', "expected the name of a wheel, got '../../x.whl'"),
        ('"base": "sha256:', '"base": "md5:', "expected packages or the digest of a base"),
        ('"glibc": "2.41"', '"glibc": "2.20"', "expected wheels for this platform and glibc 2.20, got speedy"),
        ("linux/arm64", "linux/riscv64", "expected platforms of linux/amd64, linux/arm64, got 'linux/riscv64'"),
    ],
)  # fmt: skip
def test_tampered_lock_is_refused(made: ImageProject, before: str, after: str, said: str) -> None:
    """Each entry is checked before anything is fetched."""
    text = (made.root / "image.lock").read_text()
    assert before in text
    (made.root / "image.lock").write_text(text.replace(before, after))
    with pytest.raises(ImageError) as raised:
        made.build()
    assert said in str(raised.value)


def test_lock_with_another_digest_is_refused(tmp_path: Path) -> None:
    """pip compares the digest of each wheel with the lock's, and the error names both."""
    made = new_image_project(tmp_path)
    locked = made.lock_by_hand()
    wheel = locked.platforms["linux/amd64"].wheels[0]
    (made.root / "image.lock").write_text(locked.text().replace(wheel.sha256, "0" * 64))
    with pytest.raises(ImageError) as raised:
        made.build()
    assert f"expected a wheel with the SHA-256 {'0' * 64} of image.lock, got {wheel.sha256}" in str(raised.value)
    assert not (made.root / "dist").exists()


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"build": 'platforms = ["linux/riscv64"]'}, ImageError, "got 'linux/riscv64'"),
        ({"build": "platforms = []"}, ConfigError, "expected one or more different platforms, got none"),
        ({"build": 'packages = ["git"]'}, ConfigError, "expected none on the base oci:base, got git"),
        ({"build": 'extras = ["slow"]'}, ConfigError, "expected extras of the project, fast; got 'slow'"),
        ({"requires_python": ">=3.99"}, ImageError, "the project needs Python >=3.99, but the base oci:base has"),
        ({"dependencies": ("x @ https://example.com/x.whl",)}, ConfigError, "--find-links FOLDER"),
        ({"dependencies": ("not a requirement!",)}, ConfigError, "expected a requirement, got 'not a requirement!'"),
    ],
)
def test_what_cannot_be_locked_is_refused(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Before pip runs, with the place of the fault."""
    made = new_image_project(tmp_path, **settings)
    with pytest.raises(error) as raised:
        lock_image(made.project, made.base(), made.pip)
    assert said in str(raised.value)


def test_extras_of_the_project_are_locked(tmp_path: Path) -> None:
    """The dependencies of an extra are requirements as all others."""
    made = new_image_project(tmp_path, dependencies=(), build='extras = ["fast"]\nplatforms = ["linux/arm64"]')
    assert [each.name for each in made.lock().platforms["linux/arm64"].wheels] == ["speedy"]


def test_dynamic_dependencies_are_refused(made: ImageProject) -> None:
    """Only the build backend would know them."""
    pyproject = made.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("dependencies = ['cachelib>=1']", 'dynamic = ["dependencies"]'))
    with pytest.raises(ConfigError, match="expected dependencies in the file, got dynamic ones"):
        made.build()


def test_base_without_glibc_or_python_is_refused(tmp_path: Path) -> None:
    """Wheels need the one, the image the other."""
    made = new_image_project(tmp_path)
    write_base(made.root / "base", glibc="none")
    with pytest.raises(ImageError, match="expected the C library glibc, got none"):
        made.base().lock("linux/amd64")
    write_base(made.root / "base", python="2")
    with pytest.raises(ImageError, match="expected python3 with its version"):
        made.base().lock("linux/amd64")
