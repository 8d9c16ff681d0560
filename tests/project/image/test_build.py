"""`navarch image build`: layers, digests, and what a build refuses."""

from __future__ import annotations

import marshal
import os
import re
import shutil
import struct
import subprocess
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from navarch.errors import ConfigError, ImageError, InvalidValueError
from navarch.oci.documents import ImageManifest, Platform, decode_config
from navarch.oci.layout import Layout
from navarch.project.image.build import BuiltImage
from navarch.project.image.build_cache import BuildCache
from navarch.project.image.inspect import inspect_image
from project.image.image_projects import IMAGE, MINOR, SITE, ImageProject, new_image_project, write_wheel

_BYTECODE = f"cpython-{MINOR.replace('.', '')}.pyc"


@pytest.fixture
def made(tmp_path: Path) -> ImageProject:
    """A locked project; all wheels are in its cache."""
    made = new_image_project(tmp_path)
    made.lock_by_hand()
    return made


@pytest.fixture(autouse=True)
def _no_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)


def layers_of(made: ImageProject, built: BuiltImage, platform: str) -> list[str]:
    """Returns the digests of the layers."""
    _, manifest = made.layout.image(made.layout.names[built.name], Platform.parse(platform))
    return [each.digest for each in manifest.layers]


def config_of(made: ImageProject, built: BuiltImage, platform: str) -> Any:
    """Returns the configuration."""
    _, manifest = made.layout.image(made.layout.names[built.name], Platform.parse(platform))
    return decode_config(made.layout.read(manifest.config.digest), where="test")


def test_image_has_base_dependencies_and_code(made: ImageProject) -> None:
    """In this order, from what changes seldom to what changes often; the code is one layer for all platforms."""
    built = made.build()
    amd64, arm64 = (layers_of(made, built, each) for each in ("linux/amd64", "linux/arm64"))
    assert len(amd64) == 3
    assert amd64[2] == arm64[2]
    assert amd64[1] != arm64[1]
    dependencies = made.files(built, "linux/arm64", layer=1)
    assert dependencies.read(f"{SITE}/speedy/_c.so") == b"aarch64"
    assert dependencies.read("usr/local/bin/cachectl").startswith(b"#!/usr/local/bin/python3\n")  # type: ignore[union-attr]
    code = made.files(built, "linux/amd64", layer=2)
    assert code.read(f"{SITE}/cache_operator/crds/cache.yaml") == b"kind: CustomResourceDefinition\n"
    metadata = code.read(f"{SITE}/cache_operator-0.3.0.dist-info/METADATA")
    assert metadata is not None
    assert b"Name: cache-operator\nVersion: 0.3.0\n" in metadata
    assert b"Requires-Dist: cachelib>=1\n" in metadata
    assert "usr/local/bin/cache" in code


def test_container_starts_the_operator_as_nobody(made: ImageProject) -> None:
    """The configuration needs no Dockerfile: entry point, user, environment and labels follow from the project."""
    config = config_of(made, made.build(), "linux/amd64")
    assert (config.os, config.architecture, config.created) == ("linux", "amd64", "1970-01-01T00:00:00Z")
    assert config.config.entrypoint == ["/usr/local/bin/python3", "-m", "cache_operator"]
    assert (config.config.user, config.config.working_dir) == ("65532:65532", "/")
    variables = dict(each.split("=", 1) for each in config.config.env)
    assert variables["PYTHONDONTWRITEBYTECODE"] == variables["PYTHONUNBUFFERED"] == "1"
    assert variables["SSL_CERT_FILE"] == "/etc/ssl/certs/ca-certificates.crt"
    assert (variables["BASE"], variables["PATH"]) == ("yes", "/usr/local/bin:/usr/bin")
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config.config.labels.items()}
    assert (labels["title"], labels["version"], labels["licenses"]) == ("cache-operator", "0.3.0", "Apache-2.0")
    assert labels["source"] == "https://git.example.com/cache"
    assert labels["base.name"] == "oci:base"


def test_bytecode_is_unchecked_and_names_the_files_of_the_image(made: ImageProject) -> None:
    """Of code, dependencies and standard library: a container never compiles, and tracebacks show its own paths."""
    files = made.files(made.build(), "linux/arm64")
    for module in (f"{SITE}/cache_operator/__init__", f"{SITE}/cachelib/__init__", f"usr/lib/python{MINOR}/os"):
        folder, _, name = module.rpartition("/")
        content = files.read(f"{folder}/__pycache__/{name}.{_BYTECODE}")
        assert content is not None
        assert struct.unpack_from("<I", content, 4) == (1,), "expected a hash that nobody checks"
        code = marshal.loads(content[16:])
        assert isinstance(code, types.CodeType)
        assert code.co_filename == f"/{module}.py"


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_same_commit_gives_the_same_digest(tmp_path: Path, umask: int) -> None:
    """In another folder, with another umask, other times of files, an empty cache and another hash seed."""
    first = new_image_project(tmp_path / "one")
    first.lock_by_hand()
    digest = first.build().digest
    before = os.umask(umask)
    try:
        second = ImageProject(tmp_path / "elsewhere", BuildCache(tmp_path / "empty"), first.wheels)
        shutil.copytree(first.root, second.root, ignore=shutil.ignore_patterns("dist"))
        for file in (second.root / "src").rglob("*"):
            os.utime(file, (1, 1))
        (second.root / "src" / "cache_operator" / "__pycache__").mkdir()
        (second.root / "src" / "cache_operator" / "__pycache__" / "x.pyc").write_bytes(b"of this machine")
        (second.root / "src" / "cache_operator" / ".#lock~").write_text("of an editor")
        second.lock_by_hand()
        assert second.build().digest == digest
    finally:
        os.umask(before)


def test_changed_line_changes_the_code_layer_alone(made: ImageProject) -> None:
    """The other layers and the SBOM stay: registries and nodes have them."""
    first = made.build()
    before = [layers_of(made, first, each.platform) for each in first.platforms]
    blobs = {each.name for each in (made.layout.folder / "blobs" / "sha256").iterdir()}
    (made.root / "src" / "cache_operator" / "__init__.py").write_text("VERSION = 2\n")
    second = made.build()
    after = [layers_of(made, second, each.platform) for each in second.platforms]
    assert [each[:2] for each in after] == [each[:2] for each in before]
    assert all(new[2] != old[2] for new, old in zip(after, before, strict=True))
    kept = {each.name for each in (made.layout.folder / "blobs" / "sha256").iterdir()}
    new = sum(made.layout.path(f"sha256:{name}").stat().st_size for name in kept - blobs)
    assert new < 20_000
    assert len(kept) == len(blobs), "expected the parts of the last image to be removed"


def test_labels_name_the_commit(made: ImageProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit's time is the image's, `SOURCE_DATE_EPOCH` is stronger, and uncommitted changes show."""

    def git(*arguments: str) -> str:
        author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
        done = subprocess.run(
            ["git", *arguments], cwd=made.root, env={**os.environ, **author, **dates}, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=one")
    config = config_of(made, made.build(), "linux/amd64")
    commit = git("rev-parse", "HEAD")
    assert config.created == "2026-01-02T03:04:05Z"
    assert config.config.labels["org.opencontainers.image.revision"] == commit
    assert git("status", "--porcelain") == "", "expected the layout to be ignored by git"
    (made.root / "src" / "cache_operator" / "__init__.py").write_text("VERSION = 2\n")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    config = config_of(made, made.build(), "linux/amd64")
    assert config.created == "1970-01-02T00:00:00Z"
    assert config.config.labels["org.opencontainers.image.revision"] == f"{commit}-dirty"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ConfigError, match="SOURCE_DATE_EPOCH: expected seconds since 1970, got 'yesterday'"):
        made.build()


def test_sbom_names_every_package(made: ImageProject) -> None:
    """As an SPDX document whose manifest has the image as its subject."""
    built = made.build()
    for each in built.platforms:
        (referrer,) = made.layout.referrers({each.digest})
        manifest = made.layout.manifest(referrer)
        assert isinstance(manifest, ImageManifest)
        assert (referrer.digest, manifest.artifact_type) == (each.sbom, "application/spdx+json")
        document = msgspec.json.decode(made.layout.read(manifest.layers[0].digest))
        assert document["spdxVersion"] == "SPDX-2.3"
        found = {package["name"]: package for package in document["packages"]}
        assert found["cachelib"]["licenseDeclared"] == "MIT"
        assert found["cachelib"]["externalRefs"][0]["referenceLocator"] == "pkg:pypi/cachelib@2.0"
        assert re.fullmatch("[0-9a-f]{64}", found["speedy"]["checksums"][0]["checksumValue"])
        assert found["oci:base"]["versionInfo"].startswith("sha256:")
        contained = {link["relatedSpdxElement"] for link in document["relationships"]}
        assert {package["SPDXID"] for package in document["packages"]} == contained
    platforms = inspect_image(made.layout, made.layout.names[IMAGE]).platforms
    assert [(each.type, each.name) for each in platforms[0].packages] == [("pypi", "cachelib"), ("pypi", "speedy")]


@pytest.mark.parametrize("failing", ["_sbom", "_code_layer", "_copy"])
def test_interrupted_build_leaves_no_name(made: ImageProject, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """A full disk in the middle: no image has a name, and a second build completes it."""
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(f"navarch.project.image.build._Assembly.{failing}", fail)
        with pytest.raises(OSError, match="No space left"):
            made.build()
    assert made.layout.names == {}
    digest = made.build().digest
    assert made.layout.names[IMAGE].digest == digest
    assert made.layout.sweep() == 0
    assert [*made.cache.folder.rglob(".new-*"), *made.root.rglob(".new-*")] == []


def test_builds_at_the_same_time_give_one_image(made: ImageProject) -> None:
    """They wait for each other where they make the same."""
    with ThreadPoolExecutor(2) as pool:
        digests = {each.digest for each in pool.map(lambda _: made.build(), range(2))}
    assert digests == {made.layout.names[IMAGE].digest}


def test_layout_keeps_images_of_other_names(made: ImageProject) -> None:
    """A second name is a second image; what both need is there once."""
    first = made.build("registry.example.com/a:1")
    (made.root / "src" / "cache_operator" / "__init__.py").write_text("VERSION = 2\n")
    second = made.build("registry.example.com/b:1")
    names = made.layout.names
    assert {name: each.digest for name, each in names.items()} == {first.name: first.digest, second.name: second.digest}
    assert len(made.layout.referrers({each.digest for built in (first, second) for each in built.platforms})) == 4


def test_one_platform_is_built_with_a_python_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no platform is this machine's, a Python of the same version compiles; without one the error says what to do."""
    made = new_image_project(tmp_path, build='platforms = ["linux/arm64"]')
    made.lock_by_hand()
    monkeypatch.setattr("navarch.project.image.layer_builder.host_platform", lambda: "linux/amd64")
    assert [each.platform for each in made.build().platforms] == ["linux/arm64"]
    monkeypatch.setattr(sys, "version_info", types.SimpleNamespace(major=3, minor=99))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        ImageError, match=rf"expected Python {MINOR} to compile with, got none on this machine; add linux/"
    ):
        made.build()


def test_python_of_the_base_that_does_not_run_is_named(tmp_path: Path) -> None:
    """A base for another kernel, or a damaged one."""
    made = new_image_project(tmp_path)
    made.lock_by_hand()
    made.build()
    for loader in made.cache.folder.glob("bases/*/lib*/ld-linux-*"):
        loader.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    with pytest.raises(ImageError, match="does not run on this machine: broken"):
        made.build()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"../../../etc/passwd": "root"}, "leaves"),
        ({"/etc/passwd": "root"}, "damaged"),
        ({"bad-1.data/data/bin/python3": "evil"}, "got one that replaces a file of it"),
        ({"bad-1.data/scripts/../../bin/sh": "evil"}, "leaves"),
        ({"bad-1.data/elsewhere/x": "evil"}, "damaged"),
        ({"{info}/entry_points.txt": "[console_scripts]\n../x = bad:main\n"}, "expected the name of a program"),
        ({"bad.so": b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", 40) + bytes(60)}, "got code for machine 40"),
        ({"bad.so": b"\x7fELF"}, "expected an ELF file of 64 bits"),
    ],
)
def test_hostile_wheels_are_refused(tmp_path: Path, files: dict[str, str | bytes], said: str) -> None:
    """A wheel adds modules, programs and data; it neither leaves its folders nor replaces the base."""
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "bad", "1", files)
    made = new_image_project(tmp_path, wheels=wheels, build='platforms = ["linux/amd64"]')
    made.lock_by_hand()
    with pytest.raises(ImageError) as raised:
        made.build()
    assert said in str(raised.value)


def test_damaged_wheel_in_the_cache_is_refused(made: ImageProject) -> None:
    """The cache is verified like a download."""
    wheel = made.lock_by_hand().platforms["linux/amd64"].wheels[0]
    made.cache.wheel(wheel).write_bytes(b"other")
    with pytest.raises(ImageError, match="expected the SHA-256"):
        made.build()


def test_damaged_layer_in_the_cache_is_refused(made: ImageProject) -> None:
    """A layer is compared with its digest when it is copied; nothing gets a name then."""
    made.build()
    shutil.rmtree(made.root / "dist")
    for path in list(layers_of_cache(made.cache)):
        path.write_bytes(b"other")
    with pytest.raises(ImageError, match="expected sha256:"):
        made.build()
    assert made.layout.names == {}


def layers_of_cache(cache: BuildCache) -> Iterator[Path]:
    """Yields the blobs that are compressed layers."""
    for path in (cache.folder / "layers" / "blobs" / "sha256").iterdir():
        if path.read_bytes().startswith(b"\x1f\x8b"):
            yield path


def test_symbols_for_debuggers_are_left_out(tmp_path: Path) -> None:
    """Of an extension module only the segments stay, which are all that the loader reads."""
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 999, 0, 64, 56, 1, 64, 5, 4)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 140, 140, 4096)
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "native", "1", {"native.so": header + segment + b"c" * 20 + b"symbols" * 100})
    made = new_image_project(tmp_path, wheels=wheels, build='platforms = ["linux/amd64"]')
    made.lock_by_hand()
    built = made.build()
    found = made.files(built, "linux/amd64", layer=1).read(f"{SITE}/native.so")
    assert found is not None
    assert len(found) == 140
    assert found.endswith(b"c" * 20)
    assert struct.unpack_from("<Q", found, 40) == (0,), "expected no table of sections"


def test_missing_package_and_invalid_names_are_refused(made: ImageProject) -> None:
    """With what was expected instead."""
    with pytest.raises(InvalidValueError, match="in lower case: team/app"):
        made.build("registry.example.com/Team/App:v1")
    shutil.move(made.root / "src" / "cache_operator", made.root / "src" / "other")
    with pytest.raises(ImageError, match="expected the package cache_operator in src"):
        made.build()


def test_links_out_of_the_project_are_refused(made: ImageProject) -> None:
    """A secret of the machine does not get into an image by accident; a link inside is its file."""
    (made.root / "src" / "cache_operator" / "inside.py").symlink_to("__init__.py")
    files = made.files(made.build(), "linux/amd64", layer=2)
    assert files.read(f"{SITE}/cache_operator/inside.py") == files.read(f"{SITE}/cache_operator/__init__.py")
    (made.root / "src" / "cache_operator" / "key").symlink_to("/etc/hostname")
    with pytest.raises(ImageError, match="expected a link to a file of the project"):
        made.build()


def test_changed_base_is_refused(made: ImageProject) -> None:
    """A layout beside the project may be written again; the lock names the image that was there."""
    layout = Layout.open(made.root / "base")
    (root,) = layout.names.values()
    arm64, _ = layout.image(root, Platform.parse("linux/arm64"))
    layout.tag("base:1", arm64)
    with pytest.raises(ImageError, match=r"expected sha256:\w+ of image.lock, got sha256:\w+; to build on that, run"):
        made.build()
