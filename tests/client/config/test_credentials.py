"""Tokens, user names, and token files that change."""
# ruff: noqa: ASYNC240 - a test may wait for its own small files

import logging
import os
from pathlib import Path

import pytest

from navarch._base.clock import ManualClock
from navarch.client.config import Authenticator, Config
from navarch.errors import CredentialError


def authenticator(clock: ManualClock | None = None, **fields: str | os.PathLike[str]) -> Authenticator:
    return Authenticator(Config(server="https://a", origin="here", **fields), clock or ManualClock())  # type: ignore[arg-type]  # only text fields are passed


async def bearer(made: Authenticator) -> str:
    return (await made.headers())["Authorization"].removeprefix("Bearer ")


async def test_a_token_is_sent_as_bearer() -> None:
    """And cannot be refreshed."""
    made = authenticator(token=" abc\n")
    assert await made.headers() == {"Authorization": "Bearer abc"}
    assert not await made.refresh(made.version)


async def test_user_name_and_password_are_sent_as_basic() -> None:
    """In UTF-8, as base64."""
    assert await authenticator(username="jané", password="p:w").headers() == {"Authorization": "Basic amFuw6k6cDp3"}


async def test_without_a_credential_there_are_no_headers() -> None:
    """Anonymous, or known by certificate."""
    assert await authenticator().headers() == {}


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünïcode", "\x00"])
def test_a_token_that_cannot_stand_in_a_header_is_told_without_showing_it(token: str) -> None:
    """Before it reaches the HTTP library, whose error would show it."""
    with pytest.raises(CredentialError, match="here: expected a token, got text that cannot stand") as caught:
        authenticator(token=token)
    assert token not in str(caught.value)


class TestTokenFile:
    """A file that kubelet replaces."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "token"
        path.write_text("first\n")
        return path

    async def test_a_replaced_file_is_noticed_within_a_second(self, path: Path) -> None:
        """By its date, size or inode; without looking at each request."""
        clock = ManualClock()
        made = authenticator(clock, token_file=path)
        assert await bearer(made) == "first"
        version = made.version
        path.write_text("second, longer".replace(", ", "-"))
        assert await bearer(made) == "first"
        await clock.advance(1)
        assert await bearer(made) == "second-longer"
        assert made.version > version

    async def test_a_link_turned_to_another_file_is_noticed(self, path: Path, tmp_path: Path) -> None:
        """That is how kubelet rotates: the link changes, not the file."""
        clock = ManualClock()
        (tmp_path / "other").write_text("other")
        link = tmp_path / "link"
        link.symlink_to(path)
        made = authenticator(clock, token_file=link)
        assert await bearer(made) == "first"
        (tmp_path / "new").symlink_to(tmp_path / "other")
        (tmp_path / "new").rename(link)
        await clock.advance(1)
        assert await bearer(made) == "other"

    async def test_the_file_is_read_at_least_once_a_minute(self, path: Path) -> None:
        """Also if it looks the same: some file systems keep coarse dates."""
        clock = ManualClock()
        made = authenticator(clock, token_file=path)
        assert await bearer(made) == "first"
        status = path.stat()
        path.write_text("equal\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        await clock.advance(59)
        assert await bearer(made) == "first"
        await clock.advance(1)
        assert await bearer(made) == "equal"

    async def test_a_file_that_is_gone_keeps_the_last_token(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """It may well still be good; a warning tells."""
        clock = ManualClock()
        made = authenticator(clock, token_file=path)
        assert await bearer(made) == "first"
        path.unlink()
        await clock.advance(61)
        with caplog.at_level(logging.WARNING):
            assert await bearer(made) == "first"
        assert "no such file" in caplog.text
        assert "first" not in caplog.text

    async def test_a_token_beside_the_file_is_used_until_the_file_can_be_read(self, path: Path) -> None:
        """client-go's rule for tokenFile together with token."""
        clock = ManualClock()
        path.rename(path.with_name("later"))
        made = authenticator(clock, token_file=path, token="fallback")
        assert await bearer(made) == "fallback"
        path.with_name("later").rename(path)
        await clock.advance(1)
        assert await bearer(made) == "first"

    async def test_after_a_401_the_file_is_read_at_once(self, path: Path) -> None:
        """True only if another token was found."""
        made = authenticator(token_file=path)
        assert await bearer(made) == "first"
        refused = made.version
        assert not await made.refresh(refused)
        path.write_text("second")
        assert await made.refresh(refused)
        assert await bearer(made) == "second"
        assert await made.refresh(refused), "whoever comes later with the old one has something new to try"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "no such file"),
            (b" \n", "an empty file"),
            (b"\xff\xfe", "bytes that are no text"),
            (b"a b", "header"),
        ],
    )
    async def test_a_file_without_a_token_is_told(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        """With its name and what is there instead."""
        path = tmp_path / "bad"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CredentialError, match=f"here: token file {path}: expected a token, got .*{message}"):
            await authenticator(token_file=path).headers()
