"""For how long what is kept: a day, two days, 90 days, or as the settings say; never less than what a promise needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from telegram_bus.core.errors import SettingsError
from telegram_bus.home import Home
from telegram_bus.roles.settings import load_settings
from telegram_bus.store import NewUpdate, Retention, open_store

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_700_000_000_000
ENVIRONMENT = {"TELEGRAM_BOT_TOKEN": "123:abcdefgh", "TELEGRAM_BUS_CHAT": "12"}


def kept(tmp_path: Path, **settings: str) -> Retention:
    given = {f"TELEGRAM_BUS_{name.upper()}": value for name, value in settings.items()}
    return load_settings(Home(tmp_path).profile("default"), {}, ENVIRONMENT | given).keep


def test_a_day_for_texts_two_for_ids_ninety_for_owners(tmp_path: Path) -> None:
    assert kept(tmp_path) == Retention(bodies=DAY, aside=7 * DAY, ids=2 * DAY, owners=90 * DAY)


def test_the_settings_say_otherwise(tmp_path: Path) -> None:
    keep = kept(tmp_path, keep_updates="2h", keep_ids="3d", keep_owners="30d")
    assert keep == Retention(bodies=2 * HOUR, aside=7 * DAY, ids=3 * DAY, owners=30 * DAY)
    profile = Home(tmp_path / "other").profile("default")
    profile.ensure()
    profile.config_toml.write_text('keep_updates = "1h"\nkeep_owners = "10d"\n')
    profile.config_toml.chmod(0o600)
    assert load_settings(profile, {}, ENVIRONMENT).keep == Retention(bodies=HOUR, owners=10 * DAY)


@pytest.mark.parametrize(("name", "value"), [("keep_ids", "23h"), ("keep_owners", "1h"), ("keep_updates", "soon")])
def test_what_would_break_a_promise_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name.upper()):
        kept(tmp_path, **{name: value})


@pytest.mark.parametrize("keep", [Retention(), Retention(bodies=HOUR, aside=2 * HOUR, ids=3 * HOUR, owners=4 * HOUR)])
async def test_each_thing_goes_at_its_age_and_not_a_moment_before(tmp_path: Path, keep: Retention) -> None:
    async with open_store(tmp_path / "db", holder="x") as store:
        rows = [NewUpdate(update_id=one, kind="message", body=b"x", owner_key="a") for one in (1, 2, 3)]
        done, refused, _ = await store.admit_batch(rows, 4, NOW)
        await store.settle(done.seq, "accepted", NOW)
        await store.settle(refused.seq, "rejected", NOW, "why")
        await store.claim_call("a", "r", "d", NOW)
        await store.settle_call("a", "r", b"1", NOW, sent=[(1, 1, None)])

        async def left() -> tuple[int, int, int, int, int]:
            counts = await store.counts()
            return counts.settled - counts.aside, counts.aside, counts.calls, counts.messages, counts.waiting

        for age, before, after in (
            (keep.bodies, (1, 1, 1, 1, 1), (0, 1, 1, 1, 1)),
            (keep.ids, None, None),
            (keep.aside, None, None),
            (keep.owners, None, (0, 0, 0, 0, 1)),
        ):
            await store.purge(NOW + age, keep)
            assert before is None or await left() == before
            await store.purge(NOW + age + 1, keep)
            assert after is None or await left() == after
            if age == keep.ids:
                assert (await store.counts()).calls == 0
            if age == keep.aside:
                assert (await store.counts()).aside == 0
