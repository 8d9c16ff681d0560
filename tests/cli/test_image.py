"""`navarch image lock | build | push | inspect`: from the command line, against a registry on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.oci.documents import ImageManifest
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions
from navarch.oci.registry_server import serve_in_thread
from navarch.project.image.build_cache import BuildCache
from project.image.image_projects import ImageProject, new_image_project


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageProject:
    """A locked project, which is the current folder; pip finds the wheels by its own configuration."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    made = new_image_project(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(made.wheels))
    made = made._replace(cache=BuildCache(tmp_path / "caches" / "navarch" / "image"))
    made.lock_by_hand()
    monkeypatch.chdir(made.root)
    return made


def test_image_is_locked_built_and_downloaded_with_pips_own_settings(program: Program, made: ImageProject) -> None:
    """The wheels come from where pip is configured to look; the second lock changes nothing."""
    (made.root / "image.lock").unlink()
    locked = program.json("image", "lock")
    assert (locked["changed"], locked["base"]) == (True, "oci:base")
    assert [(row["platform"], row["wheels"]) for row in locked["platforms"]] == [("linux/amd64", 2), ("linux/arm64", 2)]
    for file in made.cache.folder.glob("wheels/*/*.whl"):
        file.unlink()
    built = program.json("image", "build")
    assert built["digest"] == program.json("image", "inspect")["digest"]
    assert len(list(made.cache.folder.glob("wheels/*/*.whl"))) == 3
    said = program.run("image", "build")
    assert "linux/arm64" in said.stdout
    assert f"built registry.example.com/team/cache-operator:v1@{built['digest']}" in said.stderr


def test_image_is_pushed_with_its_sboms(program: Program, made: ImageProject, tmp_path: Path) -> None:
    """One changed line sends the code, configurations and manifests; everything else is there already."""
    with serve_in_thread(tmp_path / "registry") as address:
        name = f"{address}/team/cache-operator:v2"
        built = program.json("image", "build")
        first = program.json("image", "push", name, "--plain-http")
        assert (first["digest"], first["image"]) == (built["digest"], name)
        assert first["reference"] == f"{address}/team/cache-operator@{built['digest']}"
        assert sorted(first["sboms"]) == sorted(each["sbom"] for each in built["platforms"])
        asyncio.run(_check(name, built["platforms"][0]))
        (made.root / "src" / "cache_operator" / "__init__.py").write_text("VERSION = 2\n")
        program.json("image", "build")
        second = program.json("image", "push", name, "--plain-http")
        assert second["digest"] != first["digest"]
        assert second["sent_bytes"] < first["sent_bytes"] / 1.5
        assert second["skipped_bytes"] > 0
        said = program.run("image", "push", name, "--plain-http")
        assert said.stdout.strip() == second["reference"]
        assert f"pushed {name}: sent" in said.stderr


async def _check(name: str, platform: dict[str, str]) -> None:
    """The registry has the image for the platform, and its SBOM."""
    reference = Reference.parse(name)
    async with RegistryClient(RegistryOptions(plain_http=True)) as client:
        subject = reference._replace(tag="", digest=platform["digest"])
        (sbom,) = await client.referrers(subject, "application/spdx+json")
        assert sbom.digest == platform["sbom"]
        found = await client.get_manifest(reference._replace(tag="", digest=sbom.digest))
        assert isinstance(found.document, ImageManifest)
        assert found.document.subject is not None
        assert found.document.subject.digest == platform["digest"]


def test_image_is_shown(program: Program, made: ImageProject) -> None:
    """Layers with their sizes, packages with versions and licences, of a project and of any layout."""
    program.json("image", "build")
    shown = program.run("image", "inspect")
    assert "navarch image build: dependencies" in shown.stdout
    assert "pypi  cachelib  2.0" in shown.stdout
    found = program.json("image", "inspect", f"oci:{made.root / 'dist' / 'image'}")
    assert [each["platform"] for each in found["platforms"]] == ["linux/amd64", "linux/arm64"]
    assert [each["created_by"].rpartition(": ")[2] for each in found["platforms"][0]["layers"]] == [
        "base oci:base",
        "dependencies",
        "code",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("push", "team/app:v1"), "expected the name of an image with its registry, such as registry.example.com/team/app:v1"),
        (("push", "registry.example.com/Team/App"), "in lower case: Team/App".lower()),
        (("push",), "expected the image registry.example.com/team/cache-operator:v1 in dist/image, got none; run: navarch image build"),
        (("inspect",), "run: navarch image build"),
        (("inspect", "oci:src"), "expected a folder with an OCI layout"),
        (("build", "a b"), "'a b' is no name of an image"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(
    program: Program, made: ImageProject, arguments: tuple[str, ...], said: str
) -> None:
    """With what to do instead, and exit code 1."""
    result = program.run("image", *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_base_comes_from_a_registry(program: Program, made: ImageProject, tmp_path: Path) -> None:
    """By the digest in the lock, whatever its tag has become; layers stay as they are."""
    from navarch.oci.layout import Layout
    from navarch.oci.registry import push

    async def push_base(name: str) -> None:
        layout = Layout.open(made.root / "base")
        (root,) = layout.names.values()
        async with RegistryClient(RegistryOptions(plain_http=True)) as client:
            await push(client, layout, root, Reference.parse(name))

    with serve_in_thread(tmp_path / "registry") as address:
        name = f"{address}/base/python:3"
        asyncio.run(push_base(name))
        pyproject = made.root / "pyproject.toml"
        pyproject.write_text(pyproject.read_text().replace("oci:base", name).replace("'cachelib>=1'", ""))
        program.json("image", "lock", "--plain-http")
        built = program.json("image", "build", "--plain-http")
        asyncio.run(_delete(name))
        for folder in ("layers", "records"):
            assert (made.cache.folder / folder).is_dir()
        assert program.json("image", "build", "--plain-http")["digest"] == built["digest"]
    labels = program.json("image", "inspect")["platforms"][0]["labels"]
    assert labels["org.opencontainers.image.base.name"] == name


async def _delete(name: str) -> None:
    async with RegistryClient(RegistryOptions(plain_http=True)) as client:
        await client.delete_manifest(Reference.parse(name))
