"""Two hops: a donor's offer through the leader to the recipient's endpoint, and its receipt all the way back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import trio

from benchmarks._leader import Follower, resources
from benchmarks._recipient import NAME
from benchmarks._tools import Measured, Run, benchmark, child, percentile
from telegram_bus.core.envelopes import OfferQueueHandoff
from telegram_bus.core.payloads import AdmissionReceipt, Prompt, TextContent
from telegram_bus.wire.client import BusClient, open_client

AT_ONCE = 8
SIZES = (
    # bytes of the prompt, repetitions; targets: p50 one at a time (ms), a second with 8 at once; the reference's
    ("1 KB", 1_000, 4_000, 0.3, 10_000, "0.48 ms", "3,000/s"),
    ("10 KB", 10_000, 2_000, None, None, "0.59 ms", "2,000/s"),
    ("1 MB", 1_000_000, 300, 4.0, 250, "32 ms", "43/s"),
)
MANY_LARGE = 2_000
FLAT = 8  # MB that the leader may need more after them: a few lines in flight, nothing kept


@benchmark("routing", "handoffs over two hops, each side a process of its own, no journal")
def routing(run: Run) -> Iterator[Measured]:
    leader, endpoint = str(run.directory / "routing"), str(run.directory / "recipient")
    with child("benchmarks._leader", leader), child("benchmarks._recipient", leader, endpoint):
        for size, octets, count, p50, rate, reference, reference_rate in SIZES:
            times, speed = trio.run(_measure, leader, octets, max(40, count // 10) if run.quick else count)
            alone = percentile(times, 50)
            yield Measured(
                name=f"{size}, one at a time, p50",
                value=alone * 1e3,
                unit="ms",
                target=p50,
                reference=reference,
                ratio=alone / run.echo,
            )
            yield Measured(name=f"{size}, one at a time, p99", value=percentile(times, 99) * 1e3, unit="ms")
            yield Measured(
                name=f"{size}, {AT_ONCE} at once",
                value=speed,
                unit="/s",
                target=rate,
                better="more",
                reference=reference_rate,
            )
        count = MANY_LARGE // 10 if run.quick else MANY_LARGE
        yield Measured(
            name=f"leader's memory after {count:,} of 1 MB, more than before",
            value=trio.run(_growth, leader, count),
            unit="MB",
            target=FLAT,
            reference="dies after 4,086",
        )


def _offer(donor: Follower, octets: int, number: int) -> OfferQueueHandoff:
    recipient = Follower(NAME)
    work = Prompt(
        kind="prompt",
        queue_lane="default",
        chat_id=1,
        reply_to_message_id=1,
        queue_order=1,
        lane_order=1,
        status_summary="",
        admission_receipts=(AdmissionReceipt(queue_kind="prompt", receipt_id="r", source_update_ids=(1,)),),
        source_message_ids=(1,),
        queued_attachments=(),
        content=(TextContent(type="text", text="x" * octets),),
        history_text="",
    )
    return OfferQueueHandoff(
        request_id=f"{donor.instance_id}:{time.monotonic_ns()}:{number}",
        auth=donor.registration().auth,
        instance_id=donor.instance_id,
        registration_generation=donor.generation,
        recipient_instance_id=recipient.instance_id,
        recipient_registration_generation=recipient.generation,
        donor_process_id=12345,
        donor_process_birth_id="1:start:1",
        donor_session_generation=1,
        donor_acquisition_id="q",
        donor_acquired_at_ms=1_700_000_000_000,
        handoff_token="0" * 32,
        payload=work,
        sent_at_ms=1_700_000_000_000,
    )


async def _hand_over(client: BusClient, offer: OfferQueueHandoff) -> None:
    ack = await client.request(offer)
    assert ack.ok, ack.message
    assert ack.result == {"handoffToken": offer.handoff_token}


async def _together(client: BusClient, donor: Follower, octets: int, count: int) -> float:
    """Hand over, so many at once as are measured; returns the seconds that it took."""

    async def some(lane: int) -> None:
        for number in range(lane, count, AT_ONCE):
            await _hand_over(client, _offer(donor, octets, number))

    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for lane in range(AT_ONCE):
            nursery.start_soon(some, lane)
    return time.perf_counter() - begin


async def _measure(leader: str, octets: int, count: int) -> tuple[list[float], float]:
    donor = Follower("donor")
    times = []
    async with open_client(lambda: leader) as client:
        await donor.join(client)
        for number in range(count // 10 + count):
            offer = _offer(donor, octets, number)
            begin = time.perf_counter()
            await _hand_over(client, offer)
            times.append(time.perf_counter() - begin)
        seconds = await _together(client, donor, octets, count * 2)
    return times[count // 10 :], count * 2 / seconds


async def _growth(leader: str, count: int) -> float:
    donor = Follower("donor")
    async with open_client(lambda: leader) as client:
        await donor.join(client)
        await _together(client, donor, 1_000_000, 100)
        _, before = await resources(client)
        await _together(client, donor, 1_000_000, count)
        _, after = await resources(client)
    return after - before
