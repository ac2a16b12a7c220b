"""Files of followers in a leader: limits, paths that version-1 peers name, downloads, and who closes what."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.errors import AnswerLost, ApiError, RequestRefused, StateError, single_fault
from telegram_bus.core.extensions import FilePart
from telegram_bus.core.permissions import Allowed, repeatable
from telegram_bus.core.registry import Member, Registry
from telegram_bus.home import Profile
from telegram_bus.roles.calls import Calls
from telegram_bus.roles.files import Enclosed, FileLimits, Files
from telegram_bus.roles.folder import begin_file, finish_file, sweep
from telegram_bus.roles.opening import open_below
from telegram_bus.wire.descriptors import Descriptors
from tests.effort import examples
from tests.fakes import CHAT, FakeTelegram, admit, fake_files, memory_store

BODY = {"chat_id": CHAT, "message_thread_id": 11}


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def enclosed(path: Path, *, name: str = "a.txt", flags: int = os.O_RDONLY) -> Enclosed:
    descriptor = os.open(path, flags)
    return Enclosed((FilePart(field="document", name=name),), Descriptors([descriptor]))


def member(profile: Profile, cwd: Path | None = None, key: str = "nora") -> Member:
    found = admit(Registry(), key)
    return evolve(found, registration=evolve(found.registration, cwd=None if cwd is None else str(cwd)))


async def through_calls(
    telegram: FakeTelegram,
    files: Files,
    who: Member,
    call: Allowed,
    *,
    earlier: sqlite3.Connection | None = None,
    **more: Any,
) -> Any:
    """Makes the call with a real sender and a store in memory."""
    store, _commits = memory_store(earlier)
    sender = Sender(telegram, repeatable=repeatable)
    calls = Calls(store=store, sender=sender, now_ms=lambda: 1, files=files)
    with single_fault():
        async with trio.open_nursery() as nursery:
            await nursery.start(sender.run)
            result = await calls.make(who, call, "r1", **more)
            nursery.cancel_scope.cancel()
    return result


# limits


def test_telegrams_own_server_takes_less_than_any_other() -> None:
    assert FileLimits.of("https://api.telegram.org") == FileLimits(upload=50_000_000, download=20_000_000)
    assert FileLimits.of("http://127.0.0.1:8081").upload == 2_000_000_000


@pytest.mark.parametrize(
    ("size", "flags", "reason"),
    [(0, os.O_RDONLY, "is empty"), (50_000_001, os.O_RDONLY, "50 MB at most.*--api-root"), (5, os.O_WRONLY, "reading")],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(tmp_path: Path, size: int, flags: int, reason: str) -> None:
    path = tmp_path / "f"
    path.touch()
    os.truncate(path, size)
    with enclosed(path, flags=flags) as files, pytest.raises(RequestRefused, match=reason):
        files.check(FileLimits())


def test_a_request_brings_as_many_files_as_it_names() -> None:
    missing = Enclosed((FilePart(field="document", name="a"),), Descriptors())
    with pytest.raises(RequestRefused, match="names 1 files, and 0"):
        missing.check(FileLimits())
    with pytest.raises(RequestRefused, match="no pipe"):
        Enclosed(missing.parts, Descriptors(refused=True)).check(FileLimits())


async def test_a_sent_file_is_closed_by_the_sender(bus_profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    files, telegram = enclosed(path), FakeTelegram()
    [descriptor] = files.descriptors.numbers()
    call = Allowed(method="call", args=("sendDocument", BODY))
    await through_calls(telegram, fake_files(telegram), member(bus_profile), call, enclosed=files)
    assert telegram.uploads == [("document", "a.txt", b"content")]
    assert not is_open(descriptor)


@pytest.mark.parametrize("fault", [None, ApiError("editMessageMedia", 400, "Bad Request: message to edit not found")])
async def test_a_file_that_takes_the_place_of_another_is_sent_and_closed(
    bus_profile: Profile, tmp_path: Path, fault: ApiError | None
) -> None:
    """Checked as any other; whatever becomes of it."""
    path, telegram = tmp_path / "a", FakeTelegram()
    path.write_bytes(b"content")
    files = enclosed(path)
    [descriptor] = files.descriptors.numbers()
    telegram.results["editMessageMedia"] = fault
    body = {"chat_id": CHAT, "message_id": 5, "media": {"type": "document", "media": "attach://document"}}
    call = Allowed(method="call", args=("editMessageMedia", body))
    with nullcontext() if fault is None else pytest.raises(ApiError):
        await through_calls(telegram, fake_files(telegram), member(bus_profile), call, enclosed=files)
    assert telegram.uploads == [("document", "a.txt", b"content")]
    assert not is_open(descriptor)
    path.write_bytes(b"")
    with enclosed(path) as empty, pytest.raises(RequestRefused, match="is empty"):
        await through_calls(telegram, fake_files(telegram), member(bus_profile), call, enclosed=empty)


async def test_a_file_that_has_grown_is_still_the_same_upload(bus_profile: Profile, tmp_path: Path) -> None:
    """Asked for again, of the next leader, it is answered and not sent."""
    path, telegram = tmp_path / "log", FakeTelegram()
    call = Allowed(method="call", args=("sendDocument", BODY))
    _store, commits = memory_store()
    results = []
    for content in (b"short", b"longer by now"):
        await trio.to_thread.run_sync(path.write_bytes, content)
        with enclosed(path) as files:
            who = member(bus_profile)
            more: dict[str, Any] = {"earlier": commits.db, "enclosed": files}
            results.append(await through_calls(telegram, fake_files(telegram), who, call, **more))
    assert results[0] == results[1]
    assert telegram.uploads == [("document", "a.txt", b"short")]


async def test_a_refused_upload_leaves_its_file_to_the_connection(bus_profile: Profile, tmp_path: Path) -> None:
    """Which closes it, taken or not."""
    path = tmp_path / "a"
    path.touch()
    with enclosed(path) as files:
        call = Allowed(method="call", args=("sendDocument", BODY))
        telegram = FakeTelegram()
        with pytest.raises(RequestRefused, match="empty"):
            await through_calls(telegram, fake_files(telegram), member(bus_profile), call, enclosed=files)
        assert len(files.descriptors) == 1


# paths


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working directory with a file, links out of it, and what is no file."""
    cwd = tmp_path / "cwd"
    (cwd / "sub").mkdir(parents=True)
    (cwd / "sub" / "a.txt").write_text("content")
    (tmp_path / "secret").write_text("token")
    (cwd / "link").symlink_to(tmp_path / "secret")
    (cwd / "out").symlink_to(tmp_path)
    os.mkfifo(cwd / "fifo")
    return cwd


def test_a_file_below_the_working_directory_is_opened(place: Path) -> None:
    descriptor = open_below(f"{place}/sub/./a.txt", [place], place / "none")
    assert os.pread(descriptor, 9, 0) == b"content"
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("{}/link", "symbolic links"),
        ("{}/out/secret", "symbolic links"),
        ("{}/../secret", "must lie in"),
        ("{}/sub/../../secret", "must lie in"),
        ("{}", "must lie in"),
        ("{}/", "must lie in"),
        ("{}x/secret", "must lie in"),
        ("/etc/passwd", "must lie in"),
        ("sub/a.txt", "must lie in"),
        ("{}/a\0b", "must lie in"),
        ("{}/fifo", "no regular file"),
        ("{}/sub", "no regular file"),
        ("{}/absent", "No such file"),
    ],
)
def test_nothing_else_is(place: Path, path: str, reason: str) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(RequestRefused, match=reason):
        open_below(path.format(place), [place], place / "none")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_working_directory_that_is_reached_by_a_link_counts(place: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(place)
    for named in (tmp_path / "alias", place):
        os.close(open_below(f"{named}/sub/a.txt", [tmp_path / "alias"], place / "none"))


def test_the_files_of_the_bus_are_not_for_uploading(bus_profile: Profile) -> None:
    """Not even to who works above or in its home; its own folder of files is."""
    bus_profile.ensure_follower("nora")
    bus_profile.config_toml.write_text("token")
    own = bus_profile.files("nora")
    (own / "a.txt").write_text("x")
    for cwd in (Path("/"), bus_profile.home.root.parent, bus_profile.home.root, bus_profile.directory):
        with pytest.raises(RequestRefused, match="files of the bus"):
            open_below(str(bus_profile.config_toml), [cwd, own], bus_profile.home.root)
    os.close(open_below(str(own / "a.txt"), [Path("/nowhere"), own], bus_profile.home.root))


async def test_a_version_1_peer_uploads_by_path(bus_profile: Profile, place: Path) -> None:
    telegram = FakeTelegram()
    who = member(bus_profile, place)
    args = ("sendDocument", BODY, "document", f"{place}/sub/a.txt", "shown.txt")
    call = Allowed(method="callMultipart", args=args)
    result = await through_calls(telegram, fake_files(telegram, bus_profile), who, call)
    assert result["message_id"]
    assert telegram.uploads == [("document", "shown.txt", b"content")]
    for bad in ({**BODY, "thumbnail": "/etc/passwd"}, {**BODY, "media": "file:///etc/passwd"}):
        call = Allowed(method="callMultipart", args=("sendDocument", bad, *args[2:]))
        with pytest.raises(RequestRefused, match="not a path"):
            await through_calls(telegram, fake_files(telegram, bus_profile), who, call)
    for odd in ((), ("document",), ("document", 5), (5, "/x")):
        call = Allowed(method="callMultipart", args=("sendDocument", BODY, *odd))
        with pytest.raises(RequestRefused, match="must be text"):
            await through_calls(telegram, fake_files(telegram, bus_profile), who, call)


async def test_a_refused_upload_by_path_is_noted_without_the_path(bus_profile: Profile, place: Path) -> None:
    telegram, notes = FakeTelegram(), list[tuple[object, ...]]()
    files = fake_files(telegram, bus_profile)
    files.refused = lambda *what: notes.append(what)
    for body, path in (
        (BODY, "/etc/passwd"),
        (BODY, f"{place}/link"),
        ({**BODY, "thumbnail": "/x"}, f"{place}/sub/a.txt"),
    ):
        call = Allowed(method="callMultipart", args=("sendDocument", body, "document", path))
        with pytest.raises(RequestRefused):
            await through_calls(telegram, files, member(bus_profile, place), call)
    assert [what[:1] + what[2:4] for what in notes] == [
        ("nora", "sendDocument", "path"),
        ("nora", "sendDocument", "path"),
        ("nora", "sendDocument", "thumbnail"),
    ]
    assert not any("passwd" in str(what) for what in notes)
    assert telegram.uploads == []


async def test_a_version_1_peer_downloads_into_its_folder(bus_profile: Profile) -> None:
    """Whatever its key looks like, and under a name of its own each time."""
    telegram = FakeTelegram({"getFile": {"file_path": "docs/x.bin", "file_size": 9}, "docs/x.bin": b"123456789"})
    files = fake_files(telegram, bus_profile)
    paths = []
    for key, name in (("nora", "../a.txt"), ("nora", "a.txt"), ("Otto/../..", None), ("otto", 5)):
        call = Allowed(method="downloadFile", args=("f", name))
        paths.append((await through_calls(telegram, files, member(bus_profile, key=key), call))["path"])
    assert [Path(path).name for path in paths] == ["a.txt", "a-2.txt", "x.bin", "x.bin"]
    assert len(set(paths)) == 4
    assert all(Path(path).read_bytes() == b"123456789" for path in paths)  # noqa: ASYNC240
    assert all(Path(path).is_relative_to(bus_profile.followers_dir) for path in paths)
    assert not list(bus_profile.followers_dir.glob("*/files/.*"))


# downloads


@pytest.mark.parametrize(
    ("results", "fault", "reason"),
    [
        ({"getFile": ApiError("getFile", 400, "Bad Request: file is too big")}, RequestRefused, "20 MB.*--api-root"),
        ({"getFile": {"file_path": "x", "file_size": 20_000_001}}, RequestRefused, "20 MB"),
        ({"getFile": ApiError("getFile", 400, "Bad Request: invalid file_id")}, ApiError, "invalid file_id"),
        ({"getFile": {"file_id": "f"}}, RequestRefused, "does not say"),
        ({"getFile": {"file_path": "/etc/passwd"}}, RequestRefused, "none of its own"),
        ({"getFile": {"file_path": "x"}, "x": StateError("full")}, StateError, "full"),
    ],
)
async def test_a_download_that_fails_says_why(
    bus_profile: Profile, tmp_path: Path, results: dict[str, Any], fault: type[Exception], reason: str
) -> None:
    telegram = FakeTelegram(results)
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into, pytest.raises(fault, match=reason):
        await fake_files(telegram, bus_profile).fetch(member(bus_profile), "f", into.descriptors)


async def test_a_lost_download_is_begun_anew(bus_profile: Profile, tmp_path: Path, autojump_clock: Any) -> None:
    telegram = FakeTelegram({"getFile": {"file_path": "x"}, "x": AnswerLost("cut")})
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into:
        os.write(into.descriptors.numbers()[0], b"rest of an earlier attempt")
        with pytest.raises(AnswerLost):
            await fake_files(telegram, bus_profile).fetch(member(bus_profile), "f", into.descriptors)
        telegram.results["x"] = b"whole"
        assert await fake_files(telegram, bus_profile).fetch(member(bus_profile), "f", into.descriptors) == {
            "size": 5,
            "name": "x",
        }
    assert (tmp_path / "a").read_bytes() == b"whole"


class Breaking(FakeTelegram):
    """Its downloads break off after ten bytes each, so often."""

    breaks = 2

    async def download(
        self, path: str, write: Callable[[int, bytes], Awaitable[None]], _most: int, start: int = 0
    ) -> int:
        self.calls.append(("download", {"path": path, "start": start}))
        content = self.results[path]
        for at in range(start, len(content), 5):
            if self.breaks and at >= start + 10:
                self.breaks -= 1
                raise AnswerLost("cut")
            await write(at, content[at : at + 5])
        return len(content)

    @property
    def starts(self) -> list[int]:
        """Where each download began."""
        return [params["start"] for params in self.made("download")]


@pytest.mark.parametrize("said", [27, None])
async def test_a_download_goes_on_where_it_broke_off(
    bus_profile: Profile, tmp_path: Path, autojump_clock: Any, said: int | None
) -> None:
    content = bytes(range(27))
    telegram = Breaking({"getFile": {"file_path": "x", "file_size": said}, "x": content})
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into:
        assert await fake_files(telegram, bus_profile).fetch(member(bus_profile), "f", into.descriptors)
    assert telegram.starts == [0, 10, 20]
    assert (tmp_path / "a").read_bytes() == content


@pytest.mark.parametrize(("there", "starts"), [(b"", [0]), (bytes(range(10)), [10]), (bytes(range(27)), [])])
async def test_the_next_leader_goes_on_with_what_the_first_one_wrote(
    bus_profile: Profile, tmp_path: Path, there: bytes, starts: list[int]
) -> None:
    telegram = FakeTelegram({"getFile": {"file_path": "x", "file_size": 27}, "x": bytes(range(27))})
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into:
        os.write(into.descriptors.numbers()[0], there)
        files = fake_files(telegram, bus_profile)
        got = await files.fetch(member(bus_profile), "f", into.descriptors, resume=True)
    assert got == {"size": 27, "name": "x"}
    assert [params["start"] for params in telegram.made("download")] == starts
    assert (tmp_path / "a").read_bytes() == bytes(range(27))


async def test_a_file_that_is_not_as_long_as_it_should_be_is_fetched_anew_and_then_given_up(
    bus_profile: Profile, tmp_path: Path, autojump_clock: Any
) -> None:
    telegram = FakeTelegram({"getFile": {"file_path": "x", "file_size": 27}, "x": b"short"})
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into, pytest.raises(AnswerLost, match="as long as"):
        await fake_files(telegram, bus_profile).fetch(member(bus_profile), "f", into.descriptors)
    assert {params["start"] for params in telegram.made("download")} == {0}


async def test_the_owner_of_the_bot_says_how_large_a_file_may_be(bus_profile: Profile, tmp_path: Path) -> None:
    telegram = FakeTelegram({"getFile": {"file_path": "x", "file_size": 2_000_001}, "x": b"x" * 101})
    telegram_takes_more = evolve(
        fake_files(telegram, bus_profile), limits=FileLimits.of("https://api.telegram.org", 2_000_000)
    )
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into:
        with pytest.raises(RequestRefused, match=r"2\.0 MB in \(--file-limit\)"):
            await telegram_takes_more.fetch(member(bus_profile), "f", into.descriptors)
        assert not telegram.made("download")


async def test_a_folder_that_is_full_takes_no_more_until_something_is_deleted(bus_profile: Profile) -> None:
    """Only what lies in the follower's own folder counts for it."""
    telegram = FakeTelegram({"getFile": {"file_path": "x", "file_size": 60}, "x": b"x" * 60})
    limits = FileLimits.of("https://api.telegram.org", None, 100)
    files = evolve(fake_files(telegram, bus_profile), limits=limits)
    who = member(bus_profile)
    bus_profile.ensure_follower("nora")
    folder = bus_profile.files("nora")
    first = await files.fetch_by_path(who, "f", "a")
    for fetching in (files.fetch_by_path(who, "f", "b"), _into(files, who, folder)):
        with pytest.raises(RequestRefused, match=r"--folder-limit.*delete what"):
            await fetching
    await _into(files, who, bus_profile.directory)
    Path(first["path"]).unlink()  # noqa: ASYNC240
    await _into(files, who, folder)


async def _into(files: Files, who: Member, directory: Path) -> None:
    descriptor, temporary = begin_file(directory)
    try:
        await files.fetch(who, "f", Descriptors([os.dup(descriptor)]))
    finally:
        os.close(descriptor)
        temporary.unlink()


async def test_whose_files_are_whose_outlives_the_leader(bus_profile: Profile, autojump_clock: Any) -> None:
    store, commits = memory_store()
    files = fake_files(FakeTelegram(), bus_profile, store)
    async with trio.open_nursery() as nursery:
        await nursery.start(files.run)
        files.note("nora", ["one", "two"])
        await trio.sleep(10)
        nursery.cancel_scope.cancel("killed")
    after = fake_files(FakeTelegram(), bus_profile, memory_store(commits.db)[0])
    assert not after.belongs("one", "nora")
    for key in ("nora", "otto"):
        recall = after.recall(key, ["one", "three"])
        assert recall is not None
        await recall()
    assert [after.belongs("one", "nora"), after.belongs("one", "otto"), after.belongs("three", "nora")] == [
        True,
        False,
        False,
    ]
    assert after.recall("nora", ["one"]) is None


async def test_what_a_full_disk_did_not_take_is_stored_later(bus_profile: Profile, autojump_clock: Any) -> None:
    store, commits = memory_store()
    files = fake_files(FakeTelegram(), bus_profile, store)
    async with trio.open_nursery() as nursery:
        await nursery.start(files.run)
        commits.fault = StateError("full")
        files.note("nora", ["one"])
        await trio.sleep(1)
        commits.fault = None
        await trio.sleep(60)
        nursery.cancel_scope.cancel("enough")
    assert commits.db.execute("SELECT file_id, key FROM files").fetchall() == [("one", "nora")]


async def test_a_server_on_this_machine_keeps_files_on_its_disk(bus_profile: Profile, tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    telegram = FakeTelegram({"getFile": {"file_path": str(tmp_path / "kept")}})
    files = evolve(fake_files(telegram, bus_profile), limits=FileLimits.of("http://127.0.0.1:8081"))
    with enclosed(tmp_path / "a", flags=os.O_RDWR | os.O_CREAT) as into:
        assert (await files.fetch(member(bus_profile), "f", into.descriptors))["size"] == 4
        telegram.results["getFile"] = {"file_path": str(tmp_path / "absent")}
        with pytest.raises(RequestRefused, match="--local"):
            await files.fetch(member(bus_profile), "f", into.descriptors)
    assert (tmp_path / "a").read_bytes() == b"kept"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND])
async def test_the_file_to_write_into_has_to_be_writable(bus_profile: Profile, tmp_path: Path, flags: int) -> None:
    with enclosed(tmp_path / "a", flags=flags | os.O_CREAT) as into, pytest.raises(RequestRefused, match="for writing"):
        await fake_files(FakeTelegram(), bus_profile).fetch(member(bus_profile), "f", into.descriptors)
    with pytest.raises(RequestRefused, match="one regular file"):
        await fake_files(FakeTelegram(), bus_profile).fetch(member(bus_profile), "f", None)


# names


def test_files_of_one_name_stand_beside_each_other(tmp_path: Path) -> None:
    for expected in ("a.txt", "a-2.txt", "a-3.txt"):
        descriptor, temporary = begin_file(tmp_path)
        os.close(descriptor)
        assert finish_file(temporary, "dir/a.txt").name == expected
    os.close(begin_file(tmp_path)[0])
    assert len(list(tmp_path.iterdir())) == 4
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-2.txt", "a-3.txt", "a.txt"]
    with pytest.raises(StateError):
        begin_file(tmp_path / "absent")


def test_what_was_given_is_remembered_up_to_a_bound(bus_profile: Profile) -> None:
    files = fake_files(FakeTelegram(), bus_profile)
    files.note("nora", ["first"])
    files.note("nora", (str(number) for number in range(20_000)))
    files.note("otto", ["19999"])
    assert not files.belongs("first", "nora")
    assert files.belongs("19999", "nora")
    assert files.belongs("19999", "otto")
    assert not files.belongs("19998", "otto")


@given(names=st.lists(st.one_of(st.text(st.characters(codec=None), max_size=300), st.just("../a.txt")), min_size=1))
@settings(max_examples=examples(60), deadline=None)
def test_scenario_89_whatever_a_file_is_called_it_lies_in_the_folder_and_replaces_none(names: list[str]) -> None:
    """Also two of one name; and nothing half-fetched stays."""
    with TemporaryDirectory() as directory:
        outside, folder = Path(directory), Path(directory, "files")
        folder.mkdir()
        paths = []
        for number, name in enumerate(names):
            descriptor, temporary = begin_file(folder)
            os.write(descriptor, str(number).encode())
            os.close(descriptor)
            paths.append(finish_file(temporary, name))
        assert {path.parent for path in paths} == {folder}
        assert [path.read_text() for path in paths] == [str(number) for number in range(len(names))]
        assert sorted(folder.iterdir()) == sorted(paths)
        assert list(outside.iterdir()) == [folder]
