"""Work that is begun by hand in the present task, so that it is known whether it has to wait, and goes on there."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

__all__ = ["resumed"]

T = TypeVar("T")


@types.coroutine
def resumed(work: Coroutine[Any, Any, T], wanted: Any) -> Generator[Any, Any, T]:
    """Go on with work that waits for what it `wanted` of Trio when it was begun (what its `send(None)` returned).

    To be awaited in the task that began it, before anything else is: what it waits for is to wake that task.
    """
    try:
        while True:
            try:
                given = yield wanted
            except BaseException as fault:  # noqa: BLE001 - the work shall have it
                wanted = work.throw(fault)
            else:
                wanted = work.send(given)
    except StopIteration as end:
        result: T = end.value
        return result
