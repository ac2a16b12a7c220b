"""Making trouble in a running sandbox: flood control, faults, outages. The part of `Client` for that."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Trouble"]

Json = dict[str, Any]


class Trouble(ABC):
    """What goes wrong, as methods. `which` is common to all faults:

    method (a name, several with commas, with `*`, or "calls": all but getUpdates, "sends", "edits"), chat_id,
    thread_id, threads (only calls with a thread), text (contained in the call's text), skip (so many pass first),
    times (1; 0: all), seconds (for so long at most), lag (seconds before the call is carried out), delay (seconds
    before it is answered), effect (whether it is carried out). A refused order raises SandboxError.
    """

    _away_until = 0.0

    # -- flood control ---------------------------------------------------------------------------------

    def flood_control(self, on: bool = True, **limits: float) -> Json:
        """Switch flood control; `limits`: overall (a second), private (a second), burst, group (a minute), scale.

        Returns them with `violations`, the calls that came more than 50 ms too early, and `by_limit`.
        """
        return self._json("flood", on=on, **limits)

    def flood(self, *, forget: bool = False) -> Json:
        """Limits and violations as they are now; `forget` counts violations from 0 again."""
        return self._json("flood", forget=forget)

    # -- faults ----------------------------------------------------------------------------------------

    def order_fault(self, does: str, **which: Any) -> int:
        """Order a fault: "answer", "refuse", "drop", "hang", "cut", "html"; returns its id.

        `which` is as above, and for "refuse" and "html" also code, description, parameters.
        """
        return int(self._json("faults/order", does=does, **which)["id"])

    def refuse(self, method: str, code: int, description: str = "", **which: Any) -> int:
        """Calls are refused and not carried out; `parameters={"retry_after": 3}` and the like may be given."""
        return self.order_fault("refuse", method=method, code=code, description=description, **which)

    def delay_answer(self, method: str, seconds: float, **which: Any) -> int:
        """Calls are carried out and answered so many seconds later."""
        return self.order_fault("answer", method=method, delay=seconds, **which)

    def drop_answer(self, method: str, **which: Any) -> int:
        """Calls are carried out, and the connection ends without an answer."""
        return self.order_fault("drop", method=method, effect=True, **which)

    def drop_call(self, method: str, **which: Any) -> int:
        """The connection ends without an answer, and nothing is carried out."""
        return self.order_fault("drop", method=method, effect=False, **which)

    def hang(self, method: str, **which: Any) -> int:
        """Calls are not answered until the client goes; with `effect=True` they are carried out."""
        return self.order_fault("hang", method=method, **which)

    def cut_answer(self, method: str, **which: Any) -> int:
        """Calls are carried out, and the connection ends in the middle of the answer."""
        return self.order_fault("cut", method=method, **which)

    def bad_gateway(self, method: str, code: int = 502, **which: Any) -> int:
        """Calls get a proxy's HTML page."""
        return self.order_fault("html", method=method, code=code, **which)

    def lose_threads(self, **which: Any) -> int:
        """A wave of "message thread not found" for all that is sent into threads; it lasts until it is cancelled.

        With times or seconds it ends by itself.
        """
        wave = {"method": "sends", "times": 0, **which}
        return self.order_fault(
            "refuse", threads=True, code=400, description="Bad Request: message thread not found", **wave
        )

    def faults(self) -> list[Json]:
        """The orders that are not used up, each with how often it `struck`."""
        faults: list[Json] = self.get("/sandbox/state")["faults"]
        return faults

    def cancel_faults(self, number: int = 0) -> int:
        """Take back one order, or all; returns how many that were."""
        return int(self._json("faults/cancel", id=number)["cancelled"])

    # -- the server ------------------------------------------------------------------------------------

    def refuse_connections(self, seconds: float) -> None:
        """Close the listener for so long, and cut all connections. Methods called meanwhile wait for the end of it,

        but `call`, which raises ConnectionRefusedError.
        """
        self._json("refuse-connections", seconds=seconds)
        self._away_until = time.monotonic() + seconds + 5.0

    def restart_ids(self, start: int = 0) -> None:
        """Update ids begin anew, at `start` or at random, with the next update that comes while none waits."""
        self._json("updates/restart", start=start)

    def repeat_batch(self, times: int = 1) -> int:
        """The last updates that were given come again, whatever was confirmed; returns how many they are."""
        return int(self._json("updates/repeat", times=times)["updates"])

    @abstractmethod
    def get(self, path: str) -> Json:
        """GET a path of the control."""

    @abstractmethod
    def _do(self, doing: str, **fields: Any) -> Any: ...

    def _json(self, doing: str, **fields: Any) -> Json:
        result: Json = self._do(doing, **fields)
        return result
