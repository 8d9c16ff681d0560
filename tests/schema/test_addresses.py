"""URIs and addresses of mail: each verdict here is one of a real API server."""

from __future__ import annotations

import pytest

from navarch.schema.values.addresses import is_email, is_uri

URIS = [
    "*",
    "/",
    "/a b",
    "a:b",
    "x:%zz",
    "x: ",
    "mailto:a@b c",
    "http:",
    "http:/",
    "http://",
    "http:///",
    "A:b",
    "a+1.-:x",
]
URIS += [
    "http://a",
    "http://a:",
    "http://a:99999/",
    "http://a/b c",
    "http://a?%zz",
    "http://a/#b",
    "http://u:p@h/",
    "//a",
]
URIS += ["http://[::1]:80", "http://[fe80::1%25en0]", "http://ü/", "http://a%25/", "http://a<b/", "http://u@h@i/", "/ü"]
NO_URIS = [
    "",
    "a",
    "?a",
    "#a",
    ":a",
    "1a://b",
    "/%zz",
    "/\t",
    "/\x7f",
    "x:\n",
    "http://a b/",
    "http://a:b",
    "http://a:80:90",
]
NO_URIS += ["http://::1/", "http://[::1]x", "http://[::1", "http://[a]/", "http://[1.2.3.4]", "http://[fe80::1%en0]"]
NO_URIS += [
    "http://%41/",
    "http://%zz/",
    "http://a{b/",
    "http://a\\b/",
    "http://a|b/",
    "http://u:p p@h/",
    "http://a[b/",
]
MAILS = [
    "a@b",
    "A B <a@b.c>",
    "<a@b.c>",
    '"a b"@c.d',
    "a@[1.2.3.4]",
    "a@[::1]",
    "ü@b.c",
    "a@ü.c",
    " a@b.c",
    "a@b.c (c)",
]
MAILS += ["group: a@b;", "a+b@c", "a@-b", "=?utf-8?q?x?= <a@b>", "'a'@b", "a@b.c ", "a@{b}"]
NO_MAILS = [
    "",
    "a",
    "a@",
    "@b",
    "a@b.c>",
    "<a@b",
    "a b@c.d",
    "(c) a@b.c",
    "a@b,c@d",
    "a..b@c",
    ".a@b",
    "a.@b",
    "a@b..c",
]
NO_MAILS += ["a@b@c", "x <a@b> y", "a:b@c", "a@[x", "a@b;", "group:;", "a@[fe80::1%a]", '""@b', "a@b (c"]


@pytest.mark.parametrize("text", URIS)
def test_uri_is_taken(text: str) -> None:
    """Whatever follows a scheme without a slash, and many signs in a path."""
    assert is_uri(text)


@pytest.mark.parametrize("text", NO_URIS)
def test_what_is_no_uri_is_refused(text: str) -> None:
    """Broken escapes in paths, and signs that a host cannot have."""
    assert not is_uri(text)


@pytest.mark.parametrize("text", MAILS)
def test_address_of_mail_is_taken(text: str) -> None:
    """With a name, with a comment behind it, as a group of one."""
    assert is_email(text)


@pytest.mark.parametrize("text", NO_MAILS)
def test_what_is_no_address_of_mail_is_refused(text: str) -> None:
    """And never fails, whatever it looks like."""
    assert not is_email(text)
