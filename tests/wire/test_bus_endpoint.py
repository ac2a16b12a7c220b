"""Endpoints: private sockets, published by a symlink, in directories that are ours alone."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
import trio

from telegram_bus.core.errors import StateError
from telegram_bus.host import raise_descriptor_limit
from telegram_bus.wire.endpoint import _check_directory, effective_public_path, open_endpoint
from telegram_bus.wire.paths import fallback_directory
from telegram_bus.wire.server import serve_bus
from tests.wire.bus_peers import RawPeer, Server, heartbeat, nobody, ok


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.connect(str(path))
        except OSError:
            return False
    return True


def test_socket_and_directory_are_for_their_owner_only(directory: Path) -> None:
    with open_endpoint(directory / "run/leader.sock") as endpoint:
        assert mode(endpoint.private) == 0o600
        assert mode(endpoint.public.parent) == 0o700


def test_it_is_private_until_it_is_published(directory: Path) -> None:
    public = directory / "leader.sock"
    with open_endpoint(public) as endpoint:
        assert not os.path.lexists(public)
        assert connects(endpoint.private)
        endpoint.publish()
        assert connects(public)
        assert public.readlink() == Path(endpoint.private.name), "the link is relative"


def test_publishing_replaces_whatever_is_there(directory: Path) -> None:
    public = directory / "leader.sock"
    public.write_text("a file of somebody else")
    with open_endpoint(public) as endpoint:
        endpoint.publish()
        assert connects(public)
        assert sorted(path.name for path in directory.iterdir()) == [public.name, endpoint.private.name]


def test_a_directory_in_place_of_the_public_path_is_refused(directory: Path) -> None:
    (directory / "leader.sock").mkdir()
    with open_endpoint(directory / "leader.sock") as endpoint, pytest.raises(StateError, match=r"leader\.sock"):
        endpoint.publish()
    assert [path.name for path in directory.iterdir()] == ["leader.sock"], "nothing is left behind"


def test_a_server_that_stops_leaves_the_endpoint_of_its_successor_alone(directory: Path) -> None:
    public = directory / "leader.sock"
    with open_endpoint(public) as successor:
        with open_endpoint(public) as endpoint:
            endpoint.publish()
            successor.publish()
        assert not endpoint.private.exists()
        assert connects(public)
        assert not successor.ensure_published()


def test_at_its_end_only_the_private_path_goes(directory: Path) -> None:
    with open_endpoint(directory / "leader.sock") as endpoint:
        endpoint.publish()
    assert endpoint.listener.fileno() < 0
    assert [path.name for path in directory.iterdir()] == ["leader.sock"]
    assert not endpoint.public.exists(), "it dangles, which counts as missing"


def test_a_withdrawn_endpoint_leaves_nothing_and_never_its_successor_s(directory: Path) -> None:
    public = directory / "bus.sock"
    with open_endpoint(public) as first:
        first.publish()
        with open_endpoint(public) as second:
            second.publish()
            first.withdraw()
            assert public.is_symlink()
            second.withdraw()
            assert not public.is_symlink()
    assert list(directory.iterdir()) == []


async def test_a_published_endpoint_stays_as_it_is(directory: Path) -> None:
    with open_endpoint(directory / "leader.sock") as endpoint:
        endpoint.publish()
        assert not endpoint.ensure_published()


@pytest.mark.parametrize("what", ["missing", "dangling", "foreign link", "foreign file"])
async def test_a_public_path_that_was_spoilt_is_published_again(directory: Path, what: str) -> None:
    public = directory / "leader.sock"
    with open_endpoint(public) as endpoint, open_endpoint(directory / "other.sock") as other:
        endpoint.publish()
        public.unlink()
        match what:
            case "dangling":
                public.symlink_to("nowhere")
            case "foreign link":
                public.symlink_to(other.private.name)
            case "foreign file":
                public.touch()
        assert endpoint.ensure_published()
        assert public.readlink() == Path(endpoint.private.name)
        assert not endpoint.ensure_published()


async def test_a_private_path_that_was_removed_gets_a_successor_while_serving(
    directory: Path, nursery: trio.Nursery
) -> None:
    """A cleaner of temporary files took the whole directory; connections that exist go on."""
    public = directory / "run/leader.sock"
    with open_endpoint(public) as endpoint:

        async def serve(task_status: trio.TaskStatus[None]) -> None:
            await serve_bus(endpoint.listener, ok, is_known=nobody, task_status=task_status)

        await nursery.start(serve)
        endpoint.publish()
        old = RawPeer(await trio.open_unix_socket(public))
        await old.ask(heartbeat())
        for path in public.parent.iterdir():
            path.unlink()
        public.parent.rmdir()
        assert endpoint.ensure_published()
        assert not endpoint.ensure_published()
        new = RawPeer(await trio.open_unix_socket(public))
        assert (await new.ask(heartbeat("new")))["requestId"] == "new"
        assert (await old.ask(heartbeat("old")))["requestId"] == "old"
        await old.stream.aclose()
        await new.stream.aclose()
        nursery.cancel_scope.cancel()
    assert not endpoint.private.exists()


async def test_somebody_elses_socket_at_the_private_path_is_not_removed(directory: Path) -> None:
    with open_endpoint(directory / "leader.sock") as endpoint:
        endpoint.private.unlink()
        endpoint.private.touch()
    assert endpoint.private.exists()


def test_sockets_of_killed_processes_are_removed_and_living_ones_are_not(directory: Path) -> None:
    public = directory / "leader.sock"
    with open_endpoint(public) as living, open_endpoint(directory / "other.sock") as other:
        orphan = directory / f"leader.sock.{'0' * 16}"
        foreign = directory / "leader.sock.old"
        for path in (orphan, foreign):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.bind(str(path))
        with open_endpoint(public):
            assert not orphan.exists()
            assert foreign.exists()
            assert living.private.exists()
            assert other.private.exists()


def test_a_path_of_80_bytes_stays_and_a_longer_one_is_hashed_into_the_fallback_directory() -> None:
    short = "/" + "a" * 79
    assert effective_public_path(short) == Path(short)
    long = "/" + "a" * 80
    assert effective_public_path(long) == Path(f"/tmp/telegram-bus-{os.geteuid()}/585db4ff6d0d54e7.sock")
    assert effective_public_path("/é" + "a" * 77).parent == Path("/é").parent, "80 bytes"
    assert effective_public_path("/é" + "a" * 78).parent == fallback_directory(), "80 characters, but 81 bytes"


def test_the_longest_private_path_fits_103_bytes(directory: Path) -> None:
    public = directory / ("a" * (80 - len(os.fsencode(directory)) - 1))
    assert len(os.fsencode(public)) == 80
    with open_endpoint(public) as endpoint:
        assert len(os.fsencode(endpoint.private)) <= 103
        endpoint.publish()
        assert connects(public)


def test_a_long_path_is_served_in_the_fallback_directory(directory: Path) -> None:
    public = directory / ("long" * 20) / "leader.sock"
    with open_endpoint(public, fallback=directory / "fallback") as endpoint:
        endpoint.publish()
        assert endpoint.public == effective_public_path(public, directory / "fallback")
        assert mode(directory / "fallback") == 0o700
        assert connects(endpoint.public)
    assert not public.parent.exists()


@pytest.mark.parametrize("open_mode", [0o755, 0o710, 0o1777])
def test_a_directory_that_is_open_to_others_is_refused_and_not_changed(directory: Path, open_mode: int) -> None:
    run = directory / "run"
    run.mkdir()
    run.chmod(open_mode)
    with pytest.raises(StateError, match="others may enter"), open_endpoint(run / "leader.sock"):
        pass
    assert mode(run) == open_mode


def test_a_symbolic_link_in_place_of_the_directory_is_refused(directory: Path) -> None:
    (directory / "real").mkdir(mode=0o700)
    (directory / "run").symlink_to("real")
    with pytest.raises(StateError, match="symbolic link"), open_endpoint(directory / "run/leader.sock"):
        pass


def test_a_directory_of_somebody_else_is_refused(directory: Path) -> None:
    owner = directory.stat().st_uid
    with pytest.raises(StateError, match=f"belongs to user {owner}, not to us"):
        _check_directory(directory, directory.lstat(), owner + 1)


def test_a_directory_that_cannot_be_made_is_a_clear_error(directory: Path) -> None:
    (directory / "file").touch()
    with (
        pytest.raises(StateError, match="cannot make the directory"),
        open_endpoint(directory / "file/run/leader.sock"),
    ):
        pass


def test_the_backlog_takes_a_thousand_at_once(directory: Path) -> None:
    """Nobody accepts here: whoever is not in the backlog is refused with EAGAIN."""
    somaxconn = int(Path("/proc/sys/net/core/somaxconn").read_text()) if Path("/proc/sys").exists() else 128
    wanted = min(1000, somaxconn, raise_descriptor_limit() - 100)
    waiting = []
    with open_endpoint(directory / "leader.sock") as endpoint:
        try:
            for _ in range(wanted):
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                waiting.append(sock)
                sock.setblocking(False)
                sock.connect(str(endpoint.private))
        finally:
            for sock in waiting:
                sock.close()
    assert len(waiting) == wanted


async def test_the_listener_may_not_be_closed_under_the_server(server: Server) -> None:
    with pytest.RaisesGroup(trio.ClosedResourceError, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: serve_bus(server.listener, ok, is_known=nobody))
            await trio.testing.wait_all_tasks_blocked()
            trio.lowlevel.notify_closing(server.listener)
            server.listener.close()
