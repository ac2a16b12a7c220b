"""Work that was begun by hand goes on as if it had been awaited."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from telegram_bus.wire.resuming import resumed


@types.coroutine
def wait_for(wanted: str) -> Generator[str, Any, Any]:
    return (yield wanted)


async def work() -> Any:
    first = await wait_for("a")
    try:
        await wait_for("b")
    except KeyError:
        return first
    raise AssertionError("what was thrown has not arrived")


async def go_on(begun: Coroutine[Any, Any, Any], wanted: Any) -> Any:
    return await resumed(begun, wanted)


def test_what_is_sent_and_thrown_reaches_the_work_and_its_result_comes_back() -> None:
    begun = work()
    rest = go_on(begun, begun.send(None))
    assert rest.send(None) == "a"
    assert rest.send(1) == "b"
    with pytest.raises(StopIteration) as end:
        rest.throw(KeyError())
    assert end.value.value == 1
