"""Where everything of ours lies on disk, and how private files get there whole."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .core.errors import SettingsError, StateError

__all__ = [
    "HOME_VARIABLE",
    "PROFILE_VARIABLE",
    "Home",
    "Profile",
    "Staged",
    "atomic_write",
    "check_private_directory",
    "ensure_private_directory",
    "mint_secret",
    "read_private",
    "read_regular",
    "read_secret",
    "stage",
    "user_locks_dir",
]

HOME_VARIABLE = "TELEGRAM_BUS_HOME"
PROFILE_VARIABLE = "TELEGRAM_BUS_PROFILE"
DEFAULT_PROFILE = "default"

APPLICATION = "telegram-bus"  # the directory's name below the user's state directory
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")  # no separators, no leading dot: a name is one path component
SECRET_BYTES = 32
SECRET_MAX = 4096  # a secret file of someone else's making; more than this is surely another file

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
OTHERS = 0o077


class Home:
    """The directory of all profiles: the argument, else $TELEGRAM_BUS_HOME, else in the user's state."""

    __slots__ = ("root",)

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        named = root if root is not None else os.environ.get(HOME_VARIABLE) or None
        # absolute, since a detached leader works in "/"; not resolved, so that a symlink in its place is seen
        self.root = Path(named).expanduser().absolute() if named is not None else user_state_dir()

    def __repr__(self) -> str:
        return f"Home({str(self.root)!r})"

    @property
    def profiles_dir(self) -> Path:
        return self.root / "profiles"

    def profile(self, name: str | None = None) -> Profile:
        """The profile of that name, else $TELEGRAM_BUS_PROFILE, else "default"; nothing is created.

        Raises SettingsError for a name that is no profile name.
        """
        return Profile(self, name or os.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE)

    def profile_names(self) -> tuple[str, ...]:
        """The profiles that exist here, sorted."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return tuple(sorted(p.name for p in self.profiles_dir.iterdir() if NAME.fullmatch(p.name)))
        return ()


class Profile:
    """One bot's corner of the home: every path in it has a name here, and no other path is ours."""

    __slots__ = ("directory", "home", "name")

    def __init__(self, home: Home, name: str) -> None:
        if not NAME.fullmatch(name):
            raise SettingsError(
                f"{name!r} is no profile name (--profile, ${PROFILE_VARIABLE}): "
                "use up to 64 of a-z 0-9 . _ -, the first one a letter or a digit"
            )
        self.home = home
        self.name = name
        self.directory = home.profiles_dir / name

    def __repr__(self) -> str:
        return f"Profile({str(self.directory)!r})"

    @property
    def config_toml(self) -> Path:
        return self.directory / "config.toml"

    @property
    def leader_json(self) -> Path:
        return self.directory / "leader.json"

    @property
    def leader_lock(self) -> Path:
        return self.directory / "leader.lock"

    @property
    def start_lock(self) -> Path:
        return self.directory / "start.lock"

    @property
    def standby_lock(self) -> Path:
        """Held by a process that stands by to lead; whoever finds it held leaves the start to it."""
        return self.directory / "standby.lock"

    @property
    def follower_secret(self) -> Path:
        return self.directory / "follower.secret"

    @property
    def operator_secret(self) -> Path:
        return self.directory / "operator.secret"

    @property
    def database(self) -> Path:
        return self.directory / "bus.sqlite3"

    @property
    def stopped(self) -> Path:
        return self.directory / "stopped"

    @property
    def run_dir(self) -> Path:
        return self.directory / "run"

    @property
    def leader_socket(self) -> Path:
        return self.run_dir / "leader.sock"

    @property
    def standby_socket(self) -> Path:
        """The bell for those who wait until the one that stands by leads; no follower's key begins like this."""
        return self.run_dir / "_standby.sock"

    @property
    def followers_dir(self) -> Path:
        return self.directory / "followers"

    @property
    def logs_dir(self) -> Path:
        return self.directory / "logs"

    @property
    def leader_log(self) -> Path:
        return self.logs_dir / "leader.log"

    @property
    def audit_log(self) -> Path:
        return self.logs_dir / "audit.jsonl"

    def follower_dir(self, key: str) -> Path:
        """The directory of the follower `key`; raises SettingsError for a key that is no path component."""
        if not NAME.fullmatch(key):
            raise SettingsError(f"{key!r} is no follower key: use up to 64 of a-z 0-9 . _ -")
        return self.followers_dir / key

    def inbox_lock(self, key: str) -> Path:
        return self.follower_dir(key) / "inbox.lock"

    def inbox(self, key: str) -> Path:
        return self.follower_dir(key) / "inbox.sqlite3"

    def files(self, key: str) -> Path:
        return self.follower_dir(key) / "files"

    def check(self) -> None:
        """Raises StateError where the profile's directory, or one around it, is not ours alone; changes nothing."""
        for directory in (self.home.root, self.home.profiles_dir, self.directory):
            check_private_directory(directory)

    def ensure(self) -> None:
        """Make the profile's directories, mode 0700; raises StateError where one is not ours alone."""
        for directory in (
            self.home.root,
            self.home.profiles_dir,
            self.directory,
            self.run_dir,
            self.followers_dir,
            self.logs_dir,
        ):
            ensure_private_directory(directory)

    def ensure_follower(self, key: str) -> Path:
        """Make the directories of the follower `key` too, and return its own; raises as `ensure` does."""
        self.ensure()
        ensure_private_directory(self.follower_dir(key))
        ensure_private_directory(self.files(key))
        return self.follower_dir(key)


def user_state_dir() -> Path:
    """`platformdirs.user_state_path("telegram-bus")`, imported only where nothing names a home."""
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path(APPLICATION)


def user_locks_dir() -> Path:
    """The locks that all homes and profiles of this user share, whatever $TELEGRAM_BUS_HOME says."""
    return user_state_dir() / "locks"


def ensure_private_directory(path: Path) -> None:
    """Make `path` (and its parents) a directory of ours, mode 0700.

    Raises StateError for a symlink in its place, somebody else's directory, or one that all may write to.
    """
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        why = f"cannot make the directory {path}: {error.strerror}"
        raise StateError(f"{why}; choose another place with --home or ${HOME_VARIABLE}") from error
    _refuse_shared(path, found)
    if found.st_mode & OTHERS:
        path.chmod(PRIVATE_DIRECTORY)


def check_private_directory(path: Path) -> None:
    """Raises StateError as `ensure_private_directory` does for what is there; makes and changes nothing."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        why = f"cannot look at the directory {path}: {error.strerror}"
        raise StateError(f"{why}; choose another place with --home or ${HOME_VARIABLE}") from error
    _refuse_shared(path, found)


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise StateError(f"{path} is a symbolic link: remove it, or put the real directory into ${HOME_VARIABLE}")
    if found.st_uid != os.geteuid():
        raise StateError(f"{path} belongs to user {found.st_uid}, not to us: choose another ${HOME_VARIABLE}")
    if found.st_mode & stat.S_IWOTH:
        raise StateError(f"anybody may write to {path}: look at what is in it, then chmod 700 {path}")


def atomic_write(path: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """Replace `path` by `data`, so that readers find the old file or the new one, after a power cut too.

    Raises OSError (a full disk, a missing directory); the old file then still stands.
    """
    staged = stage(path, data, mode)
    try:
        staged.publish()
    finally:
        staged.discard()
    staged.settle()


class Staged(NamedTuple):
    """The content of a file that is on the disk under another name, so that one rename publishes it."""

    path: Path
    temporary: Path

    def publish(self) -> None:
        """Put it in the place of what was there; raises OSError, and the old file then still stands."""
        self.temporary.replace(self.path)

    def settle(self) -> None:
        """See to it that a power cut does not bring the old file back; raises OSError."""
        _sync_directory(self.path.parent)

    def discard(self) -> None:
        """Remove what was not published."""
        self.temporary.unlink(missing_ok=True)


def stage(path: Path, data: bytes, mode: int = PRIVATE_FILE) -> Staged:
    """Write what shall be at `path`, durably, to be published later; raises OSError."""
    return Staged(path, _write_temporary(path, data, mode))


def mint_secret(path: Path) -> str:
    """The secret in `path`; where there is none yet, 32 random bytes as hex are put there, mode 0600.

    Two processes that mint at once get the same one. Raises SettingsError as `read_secret` does.
    """
    if not os.path.lexists(path):
        temporary = _write_temporary(path, f"{os.urandom(SECRET_BYTES).hex()}\n".encode(), PRIVATE_FILE)
        try:
            with suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename it never replaces another's secret
        finally:
            temporary.unlink()
        _sync_directory(path.parent)
    return read_secret(path)


def read_secret(path: Path) -> str:
    """The secret in `path` without white space around it.

    Raises SettingsError where it is missing, empty, no text, or others may read it.
    """
    data = read_private(path, SECRET_MAX)
    try:
        secret = data.decode().strip()
    except UnicodeDecodeError as error:
        raise SettingsError(f"the secret in {path} is not text: put one line of text there") from error
    if not secret or not secret.isprintable():
        raise SettingsError(f"there is no secret in {path}: put one line of text there")
    return secret


def read_regular(path: Path, limit: int) -> bytes:
    """At most `limit` bytes of a regular file; raises OSError for anything else in its place, and waits for nobody."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a fifo must not hold us up
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def read_private(path: Path, limit: int) -> bytes:
    """The bytes of a file that only its owner may read; raises SettingsError for any other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a fifo must not hold us up
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise SettingsError(f"{path} is no file: what is secret lies in a file of its own")
        if found.st_uid not in {os.geteuid(), 0}:
            raise SettingsError(f"{path} belongs to user {found.st_uid}, not to us: name another file")
        if found.st_mode & OTHERS:
            raise SettingsError(f"others may read {path}, which is secret: chmod 600 {path}")
        if found.st_size > limit:
            raise SettingsError(f"{path} has more than {limit} bytes: is it the right file?")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def _write_temporary(path: Path, data: bytes, mode: int) -> Path:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)  # the umask may have taken bits
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
