"""The leader's journal: what it keeps, what it forgets, and who may still write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio

from telegram_bus.core.bindings import Binding, CleanUp, Creation, Gone
from telegram_bus.core.errors import LeadershipLost, StateError
from telegram_bus.store import Absence, Collision, New, NewUpdate, Repeat, Store, Unknown, open_store
from telegram_bus.store.told import DOING, ICON, SILENT

NOW = 1_700_000_000_000
HOUR = 3_600_000


def update(update_id: int, owner: str | None = "builder") -> NewUpdate:
    return NewUpdate(
        update_id=update_id,
        kind="leader.forwardMessage",
        body=b'{"update_id":%d}' % update_id,
        owner_key=owner,
        chat_id=-100,
        thread_id=7,
    )


async def ids(store: Store, owner: str | None = "builder") -> list[int]:
    return [stored.update_id for stored in await store.pending(owner, 1000)]


async def test_updates_and_offset_survive_and_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "bus.sqlite3"
    async with open_store(path, holder="one") as store:
        assert await store.offset() == 0
        admitted = await store.admit_batch([update(5), update(6)], 7, NOW)
        assert [(stored.seq, stored.update_id) for stored in admitted] == [(1, 5), (2, 6)]
    async with open_store(path, holder="two") as store:
        assert await store.offset() == 7
        assert await store.pending("builder", 10) == admitted


async def test_an_update_that_was_seen_is_not_admitted_again_even_when_it_was_settled(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        [first] = await store.admit_batch([update(5), update(5)], 6, NOW)
        assert await store.settle(first.seq, "accepted", NOW)
        assert await store.admit_batch([update(5), update(4)], 6, NOW + 1) != []
        assert await ids(store) == [4]


async def test_ids_that_start_anew_lower_are_not_taken_for_old_ones(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.admit_batch([update(900_000_000)], 900_000_001, NOW)
        await store.admit_batch([update(2_000_001)], 2_000_002, NOW)
        assert await ids(store) == [900_000_000, 2_000_001]
        assert await store.offset() == 2_000_002


async def test_waiting_updates_are_listed_by_owner_and_can_be_given_to_one(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        stored = await store.admit_batch([update(1, None), update(2, "b"), update(3, "a")], 4, NOW)
        assert await store.waiting() == {None: 1, "b": 1, "a": 1}
        assert await ids(store, None) == [1]
        assert await store.assign(stored[0].seq, "a")
        assert await ids(store, "a") == [1, 3]
        assert await store.waiting() == {"a": 2, "b": 1}
        assert [got.update_id for got in await store.pending("a", 1)] == [1]


async def test_attempts_are_counted_and_the_first_outcome_stays(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        [stored] = await store.admit_batch([update(1)], 2, NOW)
        assert [await store.note_attempt(stored.seq) for _ in range(3)] == [1, 2, 3]
        assert (await store.pending("builder", 1))[0].attempts == 3
        assert await store.settle(stored.seq, "rejected", NOW)
        assert not await store.settle(stored.seq, "accepted", NOW)
        assert not await store.assign(stored.seq, "other")
        assert await store.note_attempt(stored.seq) == 0


async def test_a_thread_is_intended_bound_cleaned_up_and_let_go(tmp_path: Path) -> None:
    creation = Creation("builder", -100, "Builder", NOW, "builder:1")
    bound = Binding("builder", -100, 7, "Builder", NOW + 1, "builder:1", by_person=True, closed=True, gone_ms=NOW)
    wish = CleanUp(-100, 7, "builder", "delete", "it left", NOW + 2)
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.note_threads([creation])
        assert await store.threads_kept() == [creation]
        await store.note_threads([Gone(creation), bound, wish])
    async with open_store(tmp_path / "db", holder="y") as store:
        assert await store.threads_kept() == [bound, wish]
        assert await store.holds_clean_up(wish)
        assert not await store.holds_clean_up(wish._replace(how="close"))
        await store.note_threads([Gone(bound), Gone(wish)])
        assert not await store.holds_clean_up(wish)
        assert await store.threads_kept() == []


async def test_a_thread_has_one_owner_and_an_owner_one_thread(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        for row in (("a", -100, 7), ("b", -100, 7), ("b", -100, 8), ("c", -200, 8)):
            await store.note_threads([Binding(*row, "name", NOW)])
        assert await store.threads_kept() == [Binding("b", -100, 8, "name", NOW), Binding("c", -200, 8, "name", NOW)]


async def test_owners_of_messages_are_known_from_memory_and_after_a_restart(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.record_messages("a", [(1, 10, None), (1, 11, 7)], NOW)
        assert store.owner_nowait(1, 11) == "a"
    async with open_store(tmp_path / "db", holder="y") as store:
        assert store.owner_nowait(1, 11) is None
        assert await store.owner_of(1, 11) == "a"
        assert store.owner_nowait(1, 11) == "a"
        assert await store.owner_of(2, 11) is None
        await store.record_messages("b", [(1, 11, 7)], NOW)
        assert await store.owner_of(1, 11) == "b"


async def test_a_call_is_claimed_once_and_its_answer_repeated(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        assert await store.claim_call("a", "r1", "digest", NOW) == New()
        assert await store.claim_call("a", "r1", "digest", NOW) == Unknown()
        assert await store.claim_call("a", "r1", "other", NOW) == Collision()
        assert await store.claim_call("b", "r1", "other", NOW) == New()
        await store.settle_call("a", "r1", b'{"ok":true}', NOW)
    async with open_store(tmp_path / "db", holder="y") as store:
        assert await store.claim_call("a", "r1", "digest", NOW) == Repeat(b'{"ok":true}')
        assert await store.claim_call("a", "r1", "other", NOW) == Collision()
        assert await store.claim_call("b", "r1", "other", NOW) == Unknown()


async def test_a_claim_whose_call_was_not_sent_can_be_taken_back_but_no_answer_can(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.claim_call("a", "r1", "digest", NOW)
        assert await store.withdraw_call("a", "r1")
        assert await store.claim_call("a", "r1", "digest", NOW) == New()
        await store.settle_call("a", "r1", b"1", NOW)
        assert not await store.withdraw_call("a", "r1")
        with pytest.raises(StateError, match="never claimed"):
            await store.settle_call("a", "r2", b"1", NOW)


async def test_purging_deletes_what_is_over_at_its_age_and_never_what_waits(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        stored = await store.admit_batch([update(1), update(2)], 3, NOW)
        await store.settle(stored[0].seq, "accepted", NOW)
        await store.claim_call("a", "r", "d", NOW)
        await store.record_messages("a", [(1, 1, None)], NOW)
        assert await store.purge(NOW + 24 * HOUR) == 0
        assert await store.purge(NOW + 24 * HOUR + 1) == 1
        assert (await store.counts()).settled == 0
        assert await store.admit_batch([update(1)], 3, NOW + 48 * HOUR) == []
        await store.purge(NOW + 48 * HOUR + 1)
        assert (await store.counts()).calls == 0
        assert await store.owner_of(1, 1) == "a"
        await store.purge(NOW + 90 * 24 * HOUR + 1)
        counts = await store.counts()
        assert (counts.messages, counts.waiting) == (0, 1)
        assert len(await store.admit_batch([update(1)], 3, NOW + 91 * 24 * HOUR)) == 1


async def test_a_seq_is_never_used_again(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        [first] = await store.admit_batch([update(1)], 2, NOW)
        await store.settle(first.seq, "dropped", NOW)
        await store.purge(NOW + 49 * HOUR)
        [second] = await store.admit_batch([update(1)], 2, NOW)
        assert second.seq > first.seq


async def test_the_epoch_grows_with_each_holder_and_the_store_keeps_its_id(tmp_path: Path) -> None:
    seen = []
    for holder in ("a", "b", "c"):
        async with open_store(tmp_path / "db", holder=holder) as store:
            seen.append((store.epoch, store.store_id))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert len({store_id for _, store_id in seen}) == 1
    async with open_store(tmp_path / "db", holder="d", after_epoch=40) as store:
        assert store.epoch == 41
    async with open_store(tmp_path / "other", holder="d") as store:
        assert store.store_id != seen[0][1]


async def test_who_was_succeeded_writes_and_reads_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with open_store(path, holder="old") as old:
        await old.admit_batch([update(1)], 2, NOW)
        async with open_store(path, holder="new") as new:
            with pytest.raises(LeadershipLost, match="new leads in epoch 2"):
                await old.admit_batch([update(2)], 3, NOW)
            with pytest.raises(LeadershipLost):
                await old.claim_call("a", "r", "d", NOW)
            with pytest.raises(LeadershipLost):
                await old.offset()
            assert await ids(new) == [1]
            assert await new.claim_call("a", "r", "d", NOW) == New()


async def test_a_damaged_journal_is_replaced_the_notice_says_so_and_the_epoch_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"rubbish" * 1000)
    async with open_store(path, holder="x", after_epoch=6) as store:
        assert store.epoch == 7
        assert store.notice is not None
        assert "set aside" in store.notice
        assert await store.offset() == 0


async def test_many_tasks_use_one_store_at_once(tmp_path: Path) -> None:
    async def work(store: Store, number: int) -> None:
        for turn in range(10):
            await store.admit_batch([update(number * 10 + turn, f"owner-{number}")], 1, NOW)
            [stored] = await store.pending(f"owner-{number}", 10)
            assert await store.settle(stored.seq, "accepted", NOW)

    async with open_store(tmp_path / "db", holder="x") as store:
        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(work, store, number)
        counts = await store.counts()
    assert (counts.settled, counts.waiting) == (300, 0)


async def test_cancelled_callers_lose_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(store.admit_batch, [update(number)], number + 1, NOW)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        waiting = await ids(store)
        assert sorted(waiting) == list(range(100))


async def test_when_the_context_is_left_no_thread_is_at_work(tmp_path: Path) -> None:
    busy = trio.to_thread.current_default_thread_limiter()
    before = set(threading.enumerate())  # other tests' executors keep theirs
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.offset()
    assert busy.borrowed_tokens == 0
    assert not [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]


async def test_updates_that_came_from_no_poll_leave_the_offset(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.admit_batch([update(1)], 2, NOW)
        await store.admit_batch([update(77)], None, NOW)
        assert await store.offset() == 2
        assert await ids(store) == [1, 77]


async def test_the_newest_updates_and_owners_can_be_called_to_mind(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        stored = await store.admit_batch([update(1), update(2), update(3, None)], 4, NOW)
        await store.settle(stored[2].seq, "dropped", NOW)
        await store.record_messages("a", [(1, 10, None)], NOW)
        await store.record_messages("b", [(1, 11, 7)], NOW + 1)
        assert [found.update_id for found in await store.recent(2)] == [2, 3]
        assert await store.waiting() == {"builder": 2}
    async with open_store(tmp_path / "db", holder="y") as store:
        await store.recall_owners()
        assert (store.owner_nowait(1, 10), store.owner_nowait(1, 11)) == ("a", "b")


async def test_who_is_away_for_good_is_forgotten_with_all_that_was_known_of_it(tmp_path: Path) -> None:
    """Not who has a thread to come back to, or for whom something waits; nor what is known of those that are here."""
    async with open_store(tmp_path / "db", holder="x") as store:
        await store.admit_batch([update(1, "awaited")], 2, NOW)
        await store.note_threads([Binding("bound", -100, 7, "bound", NOW)])
        for key in ("gone", "bound", "awaited", "here"):
            for what in (DOING, ICON, SILENT):
                await store.told.tell(what + key, "1")
            if key != "here":
                await store.note_absence(Absence(key=key, since_ms=NOW))
        await store.purge(NOW + 90 * 24 * HOUR)
        assert len(await store.absences()) == 3
        assert await store.purge(NOW + 90 * 24 * HOUR + 1) == 4
        assert [absence.key for absence in await store.absences()] == ["awaited", "bound"]
        assert sorted(await store.told.recall(DOING)) == [DOING + key for key in ("awaited", "bound", "here")]
