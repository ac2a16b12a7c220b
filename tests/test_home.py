"""Where things are, and that private things stay private and whole."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from telegram_bus import home
from telegram_bus.core.errors import SettingsError, StateError
from telegram_bus.home import Home, Profile, atomic_write, ensure_private_directory, mint_secret, read_secret


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return Home(tmp_path / "home").profile("work")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_argument_wins_over_the_variable_and_the_variable_over_the_users_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TELEGRAM_BUS_HOME", str(tmp_path / "named"))
    assert Home(tmp_path / "given").root == tmp_path / "given"
    assert Home().root == tmp_path / "named"
    monkeypatch.delenv("TELEGRAM_BUS_HOME")
    assert Home().root.name == "telegram-bus"


def test_a_relative_home_becomes_absolute_for_a_leader_that_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home("here").root == tmp_path / "here"


def test_locks_of_a_bot_are_shared_by_all_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = home.user_locks_dir()
    monkeypatch.setenv("TELEGRAM_BUS_HOME", "/elsewhere")
    assert home.user_locks_dir() == before


def test_a_named_home_needs_no_platformdirs_and_no_trio() -> None:
    code = (
        "import sys, telegram_bus.home as h; h.Home('/x').profile('y').ensure.__name__; "
        "print(sorted({'trio', 'attr', 'platformdirs', 'cattrs'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_profile_is_the_name_given_or_the_variables_or_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TELEGRAM_BUS_PROFILE", raising=False)
    assert Home(tmp_path).profile().name == "default"
    monkeypatch.setenv("TELEGRAM_BUS_PROFILE", "other")
    assert Home(tmp_path).profile().name == "other"
    assert Home(tmp_path).profile("mine").name == "mine"


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "-x", "A", "ä", "a" * 65, "a\n", "a\0"])
def test_a_name_that_could_leave_the_directory_is_no_profile_and_no_follower(name: str, profile: Profile) -> None:
    with pytest.raises(SettingsError, match="no profile name"):
        profile.home.profile(name)
    with pytest.raises(SettingsError, match="no follower key"):
        profile.inbox(name)


def test_every_path_lies_in_the_profile(profile: Profile) -> None:
    names = {
        "config_toml": "config.toml",
        "leader_json": "leader.json",
        "leader_lock": "leader.lock",
        "start_lock": "start.lock",
        "follower_secret": "follower.secret",
        "operator_secret": "operator.secret",
        "database": "bus.sqlite3",
        "stopped": "stopped",
        "run_dir": "run",
        "leader_socket": "run/leader.sock",
        "followers_dir": "followers",
        "logs_dir": "logs",
        "leader_log": "logs/leader.log",
    }
    for name, path in names.items():
        assert getattr(profile, name) == profile.directory / path
    assert profile.inbox_lock("k") == profile.directory / "followers/k/inbox.lock"
    assert profile.inbox("k") == profile.directory / "followers/k/inbox.sqlite3"
    assert profile.files("k") == profile.directory / "followers/k/files"


def test_ensure_makes_private_directories_and_may_be_repeated(profile: Profile) -> None:
    profile.ensure()
    profile.ensure_follower("k")
    for path in (profile.home.root, profile.directory, profile.run_dir, profile.logs_dir, profile.files("k")):
        assert mode(path) == 0o700
    assert profile.home.profile_names() == ("work",)


def test_there_are_no_profiles_in_a_home_that_does_not_exist(tmp_path: Path) -> None:
    assert Home(tmp_path / "none").profile_names() == ()


def test_a_directory_that_others_may_read_is_closed(profile: Profile) -> None:
    profile.run_dir.mkdir(parents=True, mode=0o755)
    profile.ensure()
    assert mode(profile.run_dir) == 0o700


def test_a_directory_that_all_may_write_to_is_refused(profile: Profile) -> None:
    profile.run_dir.mkdir(parents=True)
    profile.run_dir.chmod(0o777)
    with pytest.raises(StateError, match="anybody may write"):
        profile.ensure()


def test_a_symlink_in_the_place_of_a_directory_is_refused(profile: Profile, tmp_path: Path) -> None:
    profile.directory.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    profile.run_dir.symlink_to(elsewhere)
    with pytest.raises(StateError, match="symbolic link"):
        profile.ensure()


def test_a_dangling_symlink_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    for name in ("dangling", "file"):
        with pytest.raises(StateError, match=name):
            ensure_private_directory(tmp_path / name)


def test_somebody_elses_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "foreign"
    directory.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    with pytest.raises(StateError, match="belongs to user"):
        ensure_private_directory(directory)


def test_atomic_write_replaces_the_whole_file_with_the_mode_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old and longer")
    path.chmod(0o644)
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    atomic_write(path, b"", 0o640)
    assert mode(path) == 0o640
    assert names_in(tmp_path) == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    directory = tmp_path / "taken"
    (directory / "in it").mkdir(parents=True)
    with pytest.raises(OSError, match=r"directory"):
        atomic_write(directory, b"x")
    assert names_in(tmp_path) == ["taken"]


def test_a_secret_is_minted_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secret = mint_secret(path)
    assert len(bytes.fromhex(secret)) == 32
    assert mode(path) == 0o600
    assert mint_secret(path) == read_secret(path) == secret
    assert mint_secret(tmp_path / "another") != secret
    assert names_in(tmp_path) == ["another", "secret"]


def test_many_that_mint_at_once_get_the_same_secret(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secrets: list[str] = []
    gate = threading.Barrier(16)

    def mint() -> None:
        gate.wait()
        secrets.append(mint_secret(path))

    threads = [threading.Thread(target=mint) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 16
    assert len(set(secrets)) == 1


def test_a_secret_that_others_may_read_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    mint_secret(path)
    path.chmod(0o640)
    with pytest.raises(SettingsError, match=rf"chmod 600 {path}"):
        read_secret(path)
    with pytest.raises(SettingsError, match="chmod 600"):
        mint_secret(path)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"two\nlines", b"x" * 5000])
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    atomic_write(path, content)
    with pytest.raises(SettingsError, match="secret"):
        read_secret(path)


def test_a_missing_secret_a_directory_and_a_fifo_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    for path in (tmp_path / "missing", tmp_path, tmp_path / "fifo"):
        with pytest.raises(SettingsError, match=str(path)):
            read_secret(path)
