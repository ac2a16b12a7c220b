"""A follower's endpoint as a process: registered with the leader, it accepts whatever work is handed to it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import trio

from benchmarks._leader import Follower
from telegram_bus.core.envelopes import Ack, Envelope, ForwardQueueHandoff
from telegram_bus.wire.client import open_client
from telegram_bus.wire.endpoint import open_endpoint
from telegram_bus.wire.server import Peer, serve_bus

__all__ = ["NAME"]

NAME = "recipient"


def _accept(envelope: Envelope, _peer: Peer) -> Ack:
    assert isinstance(envelope, ForwardQueueHandoff)
    receipt = {"handoffToken": envelope.handoff_token}
    return Ack(request_id=envelope.request_id, ok=True, result=receipt)


async def _serve(leader: str, path: Path) -> None:
    with open_endpoint(path) as endpoint:
        async with trio.open_nursery() as nursery, open_client(lambda: leader) as client:
            await nursery.start(partial(serve_bus, endpoint.listener, _accept, is_known=lambda _peer: True))
            endpoint.publish()
            await Follower(NAME).join(client, str(endpoint.public))
            print("ready", flush=True)
            await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(_serve, sys.argv[1], Path(sys.argv[2]))
