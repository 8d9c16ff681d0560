"""Names of images are read as Docker reads them."""

from __future__ import annotations

import pytest

from navarch.errors import InvalidValueError
from navarch.oci.reference import Reference

_DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("memcached", "docker.io/library/memcached:latest"),
        ("team/app:v1", "docker.io/team/app:v1"),
        ("index.docker.io/app", "docker.io/library/app:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/a/b/c:1.0-rc_1", "localhost:5000/a/b/c:1.0-rc_1"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        (f"ghcr.io/team/app@{_DIGEST}", f"ghcr.io/team/app@{_DIGEST}"),
        (f"ghcr.io/team/app:v1@{_DIGEST}", f"ghcr.io/team/app:v1@{_DIGEST}"),
    ],
)
def test_reference_is_completed_as_docker_does(text: str, whole: str) -> None:
    """A registry, `library/` and `latest` are added where they are left out."""
    assert str(Reference.parse(text)) == whole


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "repository"),
        ("Team/App:v1", "in lower case: team/app"),
        ("app:", "tag"),
        ("app:-x", "tag"),
        ("app:" + "x" * 129, "tag"),
        ("app@sha256:123", "digest"),
        ("app@md5:" + "a" * 32, "digest"),
        ("exa mple.com/app", "host"),
        ("host:port/app", "host"),
        ("localhost:5000//app", "repository"),
        ("localhost:5000/app/", "repository"),
        ("localhost:5000/../app", "repository"),
        ("a" * 300, "repository"),
        ("app\n", "repository"),
    ],
)
def test_invalid_reference_names_the_faulty_part(text: str, part: str) -> None:
    """A name that no registry accepts is refused before anything is sent."""
    with pytest.raises(InvalidValueError, match=part):
        Reference.parse(text)
