"""The transport against a server that fails in every way, with an eye on the token."""

from __future__ import annotations

import gc
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from urllib.parse import quote

import h11
import pytest
import trio
import trio.testing

from telegram_bus.botapi.poller import run_poller
from telegram_bus.botapi.transport import BotApi, open_api
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, NotSent, RequestRefused, SettingsError
from tests.botapi.loopback import Request, serve

TOKEN = "123456789:SENTINEL-token_AAAAAAAAAAAAAAAAAAAAA"
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def no_token_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever the logging is set to, the token stays out of it."""
    with caplog.at_level(logging.DEBUG):
        yield
    assert "SENTINEL" not in str([(record.getMessage(), record.exc_text) for record in caplog.get_records("call")])


def shown(fault: BaseException) -> str:
    """Everything that a person or a log could see of a fault."""
    chain: list[BaseException | None] = [fault, fault.__cause__, fault.__context__]
    return "".join(traceback.format_exception(fault)) + repr(chain) + str([getattr(f, "args", f) for f in chain])


async def fault_of(respond: Callable[[Request], Awaitable[None]]) -> BusError:
    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        with pytest.raises(BusError) as caught:
            await api.call("sendMessage", {"chat_id": 1, "text": "x"})
    assert "SENTINEL" not in shown(caught.value)
    return caught.value


async def echo(request: Request) -> None:
    await request.ok({"path": request.path, "fields": request.fields})


async def hang(_request: Request) -> None:
    await trio.sleep_forever()


async def test_a_call_posts_its_parameters_and_returns_the_result() -> None:
    async with serve(echo) as server, open_api(TOKEN, root=server.root + "/") as api:
        result = await api.call("sendMessage", {"chat_id": 5, "text": "ä", "reply_markup": {"inline_keyboard": [[]]}})
        assert result["path"] == f"/bot{TOKEN}/sendMessage"
        assert result["fields"] == {"chat_id": "5", "text": "ä", "reply_markup": '{"inline_keyboard":[[]]}'}
        assert (await api.call("getMe"))["fields"] == {}
        assert "SENTINEL" not in repr(api)


async def test_a_poll_has_a_connection_of_its_own_and_names_its_window() -> None:
    async with serve(echo) as server, open_api(TOKEN, root=server.root) as api:
        assert (await api.poll({"offset": 7}, 25.0))["fields"] == {"offset": "7", "timeout": "25"}
        await api.call("getMe")
        first, second = server.requests
        assert first.stream is not second.stream


async def test_scenario_47_a_hundred_slow_calls_hold_up_no_poll() -> None:
    async def respond(request: Request) -> None:
        await (echo if request.method == "getUpdates" else hang)(request)

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(api.call, "sendDocument", {"chat_id": 1})
        await trio.testing.wait_all_tasks_blocked(0.05)
        for offset in range(3):
            with trio.fail_after(PATIENCE):
                assert (await api.poll({"offset": offset}, 25.0))["fields"]["offset"] == str(offset)
        nursery.cancel_scope.cancel("they hang for ever")


async def test_refusals_carry_code_words_and_parameters() -> None:
    fault = await fault_of(lambda request: request.refuse(401, "Unauthorized"))
    assert isinstance(fault, ApiError)
    assert (fault.code, fault.description) == (401, "Unauthorized")
    fault = await fault_of(lambda request: request.refuse(404, "Not Found: method not found"))
    assert isinstance(fault, ApiError)
    assert (fault.code, fault.description) == (404, "Not Found: method not found")
    fault = await fault_of(lambda request: request.refuse(429, "Too Many Requests: retry after 7", retry_after=7))
    assert isinstance(fault, ApiError)
    assert fault.retry_after == 7


async def test_the_header_retry_after_is_read_and_not_remembered_for_the_next_call() -> None:
    answers = [{"Retry-After": "4"}, {}]

    async def respond(request: Request) -> None:
        await request.answer(b"<html>slow down</html>", status=429, headers=answers.pop(0))

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        found = []
        for _ in range(2):
            with pytest.raises(ApiError) as caught:
                await api.call("sendMessage")
            found.append(caught.value.retry_after)
    assert found == [4, None]


async def test_a_refused_connection_means_that_nothing_was_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with open_api(TOKEN, root=f"http://127.0.0.1:{unused.getsockname()[1]}") as api:
            with pytest.raises(NotSent, match=r"127\.0\.0\.1") as caught:
                await api.call("sendMessage")
    assert "SENTINEL" not in shown(caught.value)


async def test_a_server_that_speaks_no_tls_means_that_nothing_was_sent() -> None:
    async with serve(echo) as server, open_api(TOKEN, root=server.root.replace("http:", "https:")) as api:
        with pytest.raises(NotSent) as caught:
            await api.call("sendMessage")
        assert server.requests == []
    assert "SENTINEL" not in shown(caught.value)


async def test_a_connection_that_ends_before_the_answer_loses_it() -> None:
    assert type(await fault_of(lambda request: request.reset())) is AnswerLost


async def test_an_answer_that_breaks_off_is_lost() -> None:
    async def respond(request: Request) -> None:
        await request.raw(h11.Response(status_code=200, headers=[("content-length", "100")]), h11.Data(b'{"ok":tr'))
        await request.reset()

    assert type(await fault_of(respond)) is AnswerLost


async def test_cut_json_and_pages_of_gateways_are_lost_answers() -> None:
    assert type(await fault_of(lambda request: request.answer(b'{"ok":true,"result":{"mess'))) is AnswerLost
    assert type(await fault_of(lambda request: request.answer(b"<html>502</html>", status=502))) is AnswerLost
    assert type(await fault_of(lambda request: request.answer(b"", status=504))) is AnswerLost
    assert type(await fault_of(lambda request: request.answer(b""))) is AnswerLost


async def test_bytes_that_are_no_http_are_a_lost_answer() -> None:
    async def respond(request: Request) -> None:
        await request.stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    assert type(await fault_of(respond)) is AnswerLost


async def test_silence_ends_with_a_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telegram_bus.botapi.transport.ANSWER_SECONDS", 0.05)
    assert type(await fault_of(hang)) is AnswerLost


async def test_an_overlong_poll_ends_with_a_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telegram_bus.botapi.transport.POLL_GRACE_SECONDS", 0.05)
    async with serve(hang) as server, open_api(TOKEN, root=server.root) as api:
        with pytest.raises(AnswerLost, match="getUpdates"):
            await api.poll({}, 0)


async def test_a_pool_that_is_full_of_dead_calls_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telegram_bus.botapi.transport.CALL_CONNECTIONS", 2)
    monkeypatch.setattr("telegram_bus.botapi.transport.POOL_SECONDS", 0.05)

    async def respond(request: Request) -> None:
        if request.method == "hang":
            await trio.sleep_forever()
        await request.ok(True)

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(api.call, "hang")
        await server.arrived(2)
        with pytest.raises(NotSent):
            await api.call("getMe")
        assert await api.call("getMe") is True
        nursery.cancel_scope.cancel()


async def test_a_cancelled_call_costs_its_client_but_no_other_call() -> None:
    release = trio.Event()
    results = []

    async def respond(request: Request) -> None:
        if request.method == "slow":
            await release.wait()
        if request.method == "hang":
            await trio.sleep_forever()
        await request.ok(request.method)

    async def slow(api: BotApi) -> None:
        results.append(await api.call("slow"))

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        nursery.start_soon(slow, api)
        async with trio.open_nursery() as doomed:
            doomed.start_soon(api.call, "hang")
            await server.arrived(2)
            doomed.cancel_scope.cancel()
        assert await api.call("getMe") == "getMe"
        release.set()
    assert results == ["slow"]
    gc.collect()


async def test_a_request_that_breaks_off_while_it_is_written_leaves_nothing_to_the_garbage_collector() -> None:
    async def slam(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        await stream.aclose()

    async def ignore(stream: trio.SocketStream) -> None:
        async with stream:
            await trio.sleep_forever()

    big = {"text": "x" * 20_000_000}
    for handle in (slam, ignore):
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        root = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with trio.open_nursery() as nursery, open_api(TOKEN, root=root) as api:
            nursery.start_soon(trio.serve_listeners, handle, [listener])
            with trio.move_on_after(0.2 if handle is ignore else 60), pytest.raises(AnswerLost):
                await api.call("sendMessage", big)
            nursery.cancel_scope.cancel()
        gc.collect()


async def test_whatever_a_library_says_of_the_address_is_told_without_its_secrets() -> None:
    proxy = "http://me:hunter%202@127.0.0.1:3128"
    async with open_api(TOKEN, root="http://127.0.0.1:1", proxy=proxy) as api:
        for form in (TOKEN, quote(TOKEN), quote(TOKEN, safe=""), TOKEN.partition(":")[2], proxy, "hunter 2"):
            told = str(api._told("getMe", RuntimeError(f"cannot parse http://127.0.0.1:1/bot{form}/getMe")))
            assert "cannot parse" in told
            assert "SENTINEL" not in told
            assert "hunter" not in told


async def test_a_call_that_has_no_method_name_is_refused_before_anything_is_sent() -> None:
    async with serve(echo) as server, open_api(TOKEN, root=server.root) as api:
        for method in ("../getMe", "getMe?x=1", "", "a" * 200):
            with pytest.raises(RequestRefused, match="not the name"):
                await api.call(method)
        assert server.requests == []


async def test_a_proxy_that_cannot_be_reached_is_named_without_its_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"http://me:hunter%202@127.0.0.1:{unused.getsockname()[1]}"
        async with open_api(TOKEN, root="https://telegram.invalid", proxy=proxy) as api:
            with pytest.raises(NotSent, match=r"through the proxy http://me:\*\*\*@127\.0\.0\.1:\d+") as caught:
                await api.call("sendMessage")
    assert "SENTINEL" not in shown(caught.value)
    assert "hunter" not in shown(caught.value)


async def test_a_proxy_that_refuses_is_named_and_nothing_was_sent() -> None:
    async def connect(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, connect, [listener])
        async with open_api(TOKEN, root="https://telegram.invalid", proxy=proxy) as api:
            with pytest.raises(NotSent, match=r"through the proxy .*403"):
                await api.call("sendMessage")
        nursery.cancel_scope.cancel()


async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(echo) as server:
        monkeypatch.setenv("http_proxy", server.root)
        monkeypatch.setenv("no_proxy", "excepted.invalid")
        async with open_api(TOKEN, root="http://telegram.invalid") as api:
            assert (await api.call("getMe"))["path"] == f"http://telegram.invalid/bot{TOKEN}/getMe"
        async with open_api(TOKEN, root="http://excepted.invalid") as api:
            with pytest.raises(NotSent):
                await api.call("getMe")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        async with open_api(TOKEN, root=server.root) as api:
            assert (await api.call("getMe"))["path"] == f"/bot{TOKEN}/getMe"


@pytest.mark.parametrize(
    ("token", "root", "proxy"),
    [
        ("SENTINEL", "https://api.telegram.org", None),
        (TOKEN + "\n", "https://api.telegram.org", None),
        (TOKEN, "api.telegram.org", None),
        (TOKEN, "ftp://api.telegram.org", None),
        (TOKEN, "http://[::1", None),
        (TOKEN, "https://api.telegram.org", "gopher://me:SENTINEL@proxy"),
        (TOKEN, "https://api.telegram.org", "socks5://me:SENTINEL@proxy:1080"),
    ],
)
async def test_settings_that_cannot_be_right_are_refused_at_once(token: str, root: str, proxy: str | None) -> None:
    with pytest.raises(SettingsError) as caught:
        async with open_api(token, root=root, proxy=proxy):
            pass
    assert "SENTINEL" not in shown(caught.value)


async def test_a_poll_that_hangs_is_given_up_and_the_next_one_comes_on_a_new_connection() -> None:
    hung: list[Request] = []
    later: list[Request] = []
    second_came = trio.Event()

    async def respond(request: Request) -> None:
        if request.fields["offset"] == "0":
            await request.ok([{"update_id": 1}])
        elif not hung:
            hung.append(request)
            await trio.sleep_forever()
        else:
            later.append(request)
            await request.ok([{"update_id": 2}])

    async def commit(batch: list[dict[str, int]], next_offset: int) -> None:
        await trio.lowlevel.checkpoint()
        assert [update["update_id"] for update in batch] == [next_offset - 1]
        if next_offset == 3:
            second_came.set()

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api, trio.open_nursery() as nursery:
        poller = partial(run_poller, api, offset=0, commit=commit, report=lambda _: None, window=0.1)
        nursery.start_soon(poller)
        await second_came.wait()
        nursery.cancel_scope.cancel()
    assert later[0].stream is not hung[0].stream
    gc.collect()
