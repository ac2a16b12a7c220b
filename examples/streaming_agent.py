"""An agent whose answers grow while it thinks, with Markdown. Say anything to it, then look at its thread."""

from collections.abc import AsyncIterator
from contextlib import suppress

import trio

import telegram_bus

ANSWER = """
# About "{question}"

That is **{count} characters**, of which I say:

1. they came *one by one*,
2. as does ~~every~~ this answer.

| letter | how often |
| --- | --- |
{rows}

```python
def answer(question: str) -> int:
    return len(question)
```
"""


async def pieces(question: str) -> AsyncIterator[str]:
    """What a language model would give: the answer in bits."""
    letters = sorted(set(question.lower()) - {" ", "|"})
    rows = "\n".join(f"| {letter} | {question.lower().count(letter)} |" for letter in letters)
    for word in ANSWER.format(question=question, count=len(question), rows=rows).strip().split(" "):
        yield word + " "
        await trio.sleep(0.03)


async def main() -> None:
    """Answer each message in a message that grows."""
    async with telegram_bus.join(name="thinker") as bus:
        async for update in bus:
            if update.kind == "message":
                async with update.stream(markdown=True, once="answer") as stream:
                    async for piece in pieces(update.text):
                        await stream.write(piece)
            await update.done()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
        trio.run(main)
