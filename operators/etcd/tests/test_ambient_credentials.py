"""Who may use the operator's own cloud credentials: the administrator's file, and what is no such file."""

from __future__ import annotations

from pathlib import Path

import pytest

from etcd_operator.backup.credentials import AmbientCredentials, BucketPrefix
from etcd_operator.backup.snapshot_store import DestinationError
from etcd_operator.destinations import GcsSource, S3Source
from navarch.errors import ConfigError


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("s3://b", ["b/x", "b/x/y"], ["b", "bb/x", "B/x"]),
        ("s3://b/", ["b/x"], ["c/x"]),
        ("s3://b/team-a", ["b/team-a/x"], ["b/team-a", "b/team-ab/x", "b/x/team-a/x", "b/Team-a/x"]),
        ("s3://b/team-a/", ["b/team-a/x", "b/team-a/x/y"], ["b/team-a"]),
        ("s3://b/t/a", ["b/t/a/x"], ["b/t/x", "b/t/a", "b/ta/x"]),
    ],
)
def test_a_prefix_is_compared_folder_by_folder(prefix: str, inside: list[str], outside: list[str]) -> None:
    """A path with the same first letters is in another folder."""
    rule = BucketPrefix.of(prefix)
    assert all(rule.covers("s3", path) for path in inside)
    assert not any(rule.covers("s3", path) for path in outside)
    assert not any(rule.covers("gs", path) for path in inside)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "*",
        "s3://",
        "s3:///x",
        "s3:/b/x",
        "S3://b",
        "s3a://b",
        "gcs://b",
        "az://b",
        "https://b.s3.amazonaws.com/x",
        "b/x",
        "s3://b//",
        "s3://b//x",
        "s3://b/../x",
        "s3://b/./x",
        "s3://b/x//",
        "s3://b#/x",
        "s3://u@b/x",
        "s3://b?x",
        "s3://b\n",
        "s3://*/x",
    ],
)
def test_what_is_no_prefix_is_refused(text: str) -> None:
    """The error names the expected form, and nothing is allowed by mistake."""
    with pytest.raises(ConfigError, match="such as s3://bucket/folder/"):
        BucketPrefix.of(text)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "text",
        "default: s3://b",
        "default: {s3: b}",
        "default: [1]",
        "'*': [s3://b]",
        "Team: [s3://b]",
        "1: []",
        "{",
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, content: str) -> None:
    """An invalid file is refused at the start, and when it changes later no namespace is allowed anything."""
    file = tmp_path / "ambient.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError):
        AmbientCredentials(file).rules()
    with pytest.raises(DestinationError, match="cannot be used"):
        AmbientCredentials(file).refuse_others(S3Source(path="b/x"), "default")


def test_without_a_file_nobody_may(tmp_path: Path) -> None:
    """No namespace may use the operator's credentials without a file, or with a missing one."""
    for ambient in (AmbientCredentials(), AmbientCredentials(tmp_path / "nowhere")):
        with pytest.raises(
            DestinationError, match="may not use the operator's own credentials for gs://b/x: set gcpSecret"
        ):
            ambient.refuse_others(GcsSource(path="b/x"), "default")


def test_a_rule_is_for_its_namespace(tmp_path: Path) -> None:
    """A rule in JSON allows its namespace, and no other."""
    file = tmp_path / "ambient.json"
    file.write_text('{"team-a": ["s3://b/a"], "team-b": ["s3://b/b", "gs://c"]}')
    ambient = AmbientCredentials(file)
    ambient.refuse_others(S3Source(path="b/a/x"), "team-a")
    ambient.refuse_others(GcsSource(path="c/x"), "team-b")
    with pytest.raises(DestinationError):
        ambient.refuse_others(S3Source(path="b/a/x"), "team-b")
    with pytest.raises(DestinationError, match="an endpoint needs a Secret"):
        ambient.refuse_others(S3Source(path="b/a/x", endpoint="https://b"), "team-a")
