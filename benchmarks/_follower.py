"""A follower that really joins, as a process; it says in JSON what it took, and then when each update reached it."""

# ruff: noqa: E402, PLC0415 - what is imported when is what is measured
import time

BEGIN = time.perf_counter()

import json
import sys


def say(**facts: object) -> None:
    """One line of JSON."""
    print(json.dumps(facts), flush=True)


def main(name: str, then: str, starts: str = "waits") -> None:
    """Join as `name`; `then` is `take` (updates, in silence), `finish` (them too) or `report` (each).

    With `starts` it starts a leader where there is none.
    """
    import trio

    import telegram_bus

    telegram_bus.join  # noqa: B018 - it is imported when it is asked for
    imported = time.perf_counter() - BEGIN

    async def follow() -> None:
        async with telegram_bus.join(name, start_leader=starts == "starts") as bus:
            await bus.wait_serving()
            registered = time.perf_counter() - BEGIN
            unwanted = [module for module in ("telegram", "httpx", "asyncio", "rich") if module in sys.modules]
            say(imported=imported, registered=registered, unwanted=unwanted)
            async for update in bus:
                if then == "report":
                    say(text=update.text, at=time.monotonic())
                if then in {"finish", "report"}:
                    await update.done()

    trio.run(follow)


if __name__ == "__main__":
    main(*sys.argv[1:])
