"""What a leader holds while it leads: its locks, the time of their renewal, and the record by which it is found."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import trio
from attrs import define, field, frozen

from telegram_bus.core.errors import LeadershipLost, StateError
from telegram_bus.core.values import ProtocolIdentity
from telegram_bus.home import Profile, Staged
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import this_process
from telegram_bus.roles.record import LeaderRecord, stage_leader

__all__ = ["Draft", "Lease"]

log = logging.getLogger(__name__)


@define(eq=False)
class Lease:
    """One leader's time; `epoch` is assigned once the store has said it, `lost` says why the term ended early."""

    profile: Profile
    instance: str
    since: float
    epoch: int = 0
    lost: str | None = None
    _locks: tuple[FileLock, ...] = field(repr=False, default=())
    _scope: trio.CancelScope | None = field(repr=False, default=None)
    _complained: bool = False

    def check(self) -> None:
        """Raises LeadershipLost when the term is over or another may hold the locks; looks at the files."""
        if self.lost is None:
            for lock in self._locks:
                if not self._is_intact(lock):
                    self.lose(f"the lock file {lock.path} was removed or replaced")
        if self.lost is not None:
            raise LeadershipLost(self.lost)

    def lose(self, reason: str) -> None:
        """End the term at once; what runs in it is cancelled with `reason`."""
        if self.lost is None:
            self.lost = reason
            log.error("this process leads no more: %s", reason)
        if self._scope is not None:
            self._scope.cancel(reason)

    async def publish_record(
        self, endpoint: str | os.PathLike[str], protocol: ProtocolIdentity, *, state: str = "leading"
    ) -> LeaderRecord:
        """Write leader.json, by which followers find this leader. Raises LeadershipLost, StateError (a full disk)."""
        draft = await self.draft_record(endpoint, protocol, state=state)
        try:
            draft.publish()
        finally:
            draft.discard()
        await draft.settle()
        return draft.record

    async def draft_record(
        self, endpoint: str | os.PathLike[str], protocol: ProtocolIdentity, *, state: str = "leading"
    ) -> Draft:
        """All of `publish_record` that takes time before followers can see it. Raises as that does."""
        record = LeaderRecord(
            holder=this_process(),
            instance=self.instance,
            epoch=self.epoch,
            endpoint=os.fspath(endpoint),
            protocol=protocol,
            state=state,
            since=self.since,
        )
        self.check()
        with self.writing():
            return Draft(self, record, await trio.to_thread.run_sync(stage_leader, self.profile, record))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns OSError into StateError."""
        try:
            yield
        except OSError as error:
            raise StateError(f"cannot write {self.profile.leader_json}: {error.strerror}") from error

    def renew(self) -> None:
        """Renew the lease, after `check`."""
        self.check()
        for lock in self._locks:
            try:
                lock.touch()
            except OSError as error:  # whoever suspects us will ask, and we answer
                self._complain(lock, error)

    def _is_intact(self, lock: FileLock) -> bool:
        try:
            return lock.is_intact()
        except OSError as error:
            self._complain(lock, error)
            return True  # nothing shows that somebody else could hold it

    def _complain(self, lock: FileLock, error: OSError) -> None:
        if not self._complained:
            log.warning("cannot look at or renew %s: %s", lock.path, error)
            self._complained = True


@frozen
class Draft:
    """A leader.json that is on the disk under another name, until it is published or discarded."""

    lease: Lease
    record: LeaderRecord
    _staged: Staged = field(repr=False)

    def publish(self) -> None:
        """Put it in the place of the last leader's. Raises LeadershipLost, StateError."""
        self.lease.check()
        with self.lease.writing():
            self._staged.publish()

    def discard(self) -> None:
        """Remove it, if it was not published."""
        with suppress(OSError):
            self._staged.discard()

    async def settle(self) -> None:
        """See to it that a power cut does not bring back the last leader's. Raises StateError."""
        with self.lease.writing():
            await trio.to_thread.run_sync(self._staged.settle)
