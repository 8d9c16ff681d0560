"""Users, TLS and options on a real etcd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from certificates import sign
from etcd_members import SECONDS, EtcdCluster, running_etcd
from navarch.errors import ClosedError, ConfigError, EtcdAccessError, EtcdUnavailableError
from navarch.etcd import EtcdClient, EtcdOptions, EtcdSession, EtcdTls, WatchRequest, prefix_end

SECRET = "the-secret"


async def _with_users(cluster: EtcdCluster) -> None:
    async with EtcdClient(EtcdOptions(endpoints=cluster.urls)) as etcd:
        for name in ("root", "alice"):
            await etcd.access.add_user(name, SECRET)
            await etcd.access.add_role(name)
            await etcd.access.give_role(name, name)
        await etcd.access.allow("alice", b"/alice/", range_end=prefix_end(b"/alice/"))
        await etcd.access.enable()


async def test_a_user_may_do_what_the_role_allows(lone_member: EtcdCluster) -> None:
    """And nothing else: neither another user's keys, nor anything without a password."""
    await _with_users(lone_member)
    async with EtcdClient(EtcdOptions(endpoints=lone_member.urls, user="alice", password=SECRET)) as etcd:
        await etcd.kv.put(b"/alice/a", b"1")
        with pytest.raises(EtcdAccessError, match="permission denied"):
            await etcd.kv.put(b"/bob/a", b"1")
        async with etcd.watch(WatchRequest(key=b"/alice/a", start_revision=1)) as answers:
            assert (await anext(answers)).created
    async with EtcdClient(EtcdOptions(endpoints=lone_member.urls)) as nobody:
        with pytest.raises(EtcdAccessError):
            await nobody.kv.get(b"/alice/a")
    async with EtcdClient(EtcdOptions(endpoints=lone_member.urls, user="root", password=SECRET)) as root:
        await root.access.disable()


async def test_a_wrong_password_is_refused_and_not_shown(lone_member: EtcdCluster) -> None:
    """Not in the error, and not in the options either."""
    await _with_users(lone_member)
    options = EtcdOptions(endpoints=lone_member.urls, user="alice", password="another-secret")
    async with EtcdClient(options) as etcd:
        with pytest.raises(EtcdAccessError, match="authentication failed") as refused:
            await etcd.kv.get(b"/alice/a")
    assert "secret" not in f"{refused.value} {options!r}"


async def test_a_token_that_etcd_forgot_is_renewed(lone_member: EtcdCluster) -> None:
    """After a restart, for example: nobody notices."""
    await _with_users(lone_member)
    options = EtcdOptions(endpoints=lone_member.urls, user="alice", password=SECRET, patience=SECONDS)
    async with EtcdClient(options) as etcd:
        await etcd.kv.put(b"/alice/a", b"1")
        lone_member.members[0].daemon.stop()
        lone_member.members[0].start(lone_member.names)
        found = await etcd.kv.get(b"/alice/a")
        assert found is not None
        await etcd.kv.put(b"/alice/a", b"2")


async def test_both_sides_show_certificates(find_etcd: Callable[[], Path], tmp_path: Path) -> None:
    """A client without one is not let in, and a server that another CA has signed is not believed."""
    authority, stranger = sign("ca"), sign("other ca")
    files = {"ca": authority.pem, "other": stranger.pem}
    for name in ("server", "client"):
        signed = sign(name, authority)
        files |= {name: signed.pem, f"{name}-key": signed.key}
    paths = {name: tmp_path / name for name in files}
    for name, content in files.items():
        paths[name].write_bytes(content)
    flags = [
        f"--cert-file={paths['server']}",
        f"--key-file={paths['server-key']}",
        f"--trusted-ca-file={paths['ca']}",
        "--client-cert-auth",
    ]
    tls = EtcdTls(ca_file=paths["ca"], certificate_file=paths["client"], key_file=paths["client-key"])
    with running_etcd(find_etcd, tmp_path, flags=flags, tls=True) as cluster:
        async with EtcdClient(EtcdOptions(endpoints=cluster.urls, tls=tls)) as etcd:
            await etcd.kv.put(b"/a", b"1")
            async with etcd.watch(WatchRequest(key=b"/a", start_revision=1)) as answers:
                assert (await anext(answers)).created
        for refused in (EtcdTls(ca_file=paths["other"]), EtcdTls(ca_file=paths["ca"])):
            options = EtcdOptions(endpoints=cluster.urls, tls=refused, timeout=1.0, patience=0.5)
            async with EtcdClient(options) as etcd:
                with pytest.raises(EtcdUnavailableError, match=r"127\.0\.0\.1"):
                    await etcd.kv.get(b"/a")


def test_options_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    """What was expected, without a password that somebody put into an address."""
    with pytest.raises(ConfigError, match="at least one endpoint"):
        EtcdOptions(endpoints=())
    with pytest.raises(ConfigError, match=r"such as http://127.0.0.1:2379 without a user, got http://h:1") as refused:
        EtcdOptions(endpoints=("http://u:secret@h:1",))
    assert "secret" not in str(refused.value)
    with pytest.raises(ConfigError, match="such as http"):
        EtcdOptions(endpoints=("127.0.0.1:2379",))
    with pytest.raises(ConfigError, match=r"expected certificates and a key in PEM form in .*nothing"):
        EtcdClient(EtcdOptions(endpoints=("https://h",), tls=EtcdTls(ca_file=tmp_path / "nothing")))


async def test_a_closed_client_says_so(member: EtcdCluster) -> None:
    """It does not open anything again; closing twice is fine."""
    client = EtcdClient(EtcdOptions(endpoints=member.urls))
    async with client:
        await client.kv.get(b"/a")
    await client.close()
    with pytest.raises(ClosedError, match="use it inside its `async with`"):
        await client.kv.get(b"/a")


async def test_a_user_is_let_in_where_nobody_is_asked_who_they_are(lone_member: EtcdCluster) -> None:
    """And known from the moment on that access is enabled; its password can be changed."""
    options = EtcdOptions(endpoints=lone_member.urls, user="root", password=SECRET)
    async with EtcdClient(options) as early:
        assert not await early.access.log_in()
        await early.kv.put(b"/a", b"1")
        async with EtcdClient(EtcdOptions(endpoints=lone_member.urls)) as etcd:
            await etcd.access.add_user("root", "another-secret")
            await etcd.access.set_password("root", SECRET)
            await etcd.access.add_role("root")
            await etcd.access.give_role("root", "root")
            await etcd.access.enable()
        await early.kv.put(b"/a", b"2")
        assert await early.access.log_in()
        await early.access.disable()


async def test_clients_that_share_a_session_log_in_once(lone_member: EtcdCluster) -> None:
    """The second one is known by the first one's token: it would not be let in with its own password."""
    await _with_users(lone_member)
    session = EtcdSession()
    options = EtcdOptions(endpoints=lone_member.urls, user="root", password=SECRET)
    async with EtcdClient(options, session=session) as first:
        await first.kv.put(b"/a", b"1")
        other = EtcdOptions(endpoints=lone_member.urls, user="root", password="another-secret")
        async with EtcdClient(other, session=session) as second:
            assert await second.kv.get(b"/a") is not None
        assert SECRET not in repr(session)
        assert session.token not in repr(session)
        await first.access.disable()
