"""Trouble over real HTTP: what a bot sees of flood control, faults and outages, and what the record tells."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

import pytest

from telegram_bus.testing import Sandbox, SandboxError
from tests.sandbox.test_files_over_http import upload
from tests.sandbox.test_over_http import Poller, ask

Json = dict[str, Any]


def send(sandbox: Sandbox, text: str = "x", **params: Any) -> Json:
    return sandbox.call("sendMessage", **{"chat_id": sandbox.chat_id, "text": text, **params})


def said(sandbox: Sandbox, text: str) -> bool:
    return any(text == message.get("text") for message in sandbox.messages(by_bot=True))


# -- flood control -----------------------------------------------------------------------------------------


def test_too_much_is_refused_with_the_time_to_wait_in_body_and_header(calm: Sandbox) -> None:
    calm.flood_control(private=0.01, burst=1)
    body = json.dumps({"chat_id": calm.chat_id, "text": "once"})
    path = f"/bot{calm.token}/sendMessage"
    assert ask(calm, "POST", path, body, Content_Type="application/json")[0] == 200
    status, answer, headers = ask(calm, "POST", path, body, Content_Type="application/json")
    seconds = answer["parameters"]["retry_after"]
    assert 90 <= seconds <= 100
    assert (status, headers["retry-after"]) == (429, str(seconds))
    assert answer == {
        "ok": False,
        "error_code": 429,
        "description": f"Too Many Requests: retry after {seconds}",
        "parameters": {"retry_after": seconds},
    }


def test_sends_edits_and_new_topics_share_a_limit_and_other_calls_are_free(calm: Sandbox) -> None:
    calm.flood_control(group=3)
    forum = {"chat_id": calm.forum_id}
    sent = send(calm, "one", **forum)["result"]
    assert calm.call("editMessageText", message_id=sent["message_id"], text="two", **forum)["ok"]
    assert calm.call("createForumTopic", name="three", **forum)["ok"]
    for method, params in (("editMessageText", {"message_id": sent["message_id"], "text": "four"}),
                           ("createForumTopic", {"name": "five"}), ("sendMessage", {"text": "six"})):  # fmt: skip
        assert calm.call(method, **params, **forum)["error_code"] == 429
    assert calm.call("sendChatAction", action="typing", **forum)["ok"]
    assert calm.call("deleteMessage", message_id=sent["message_id"], **forum)["ok"]
    assert send(calm, "elsewhere")["ok"]
    state = calm.flood()
    assert (state["violations"], state["by_limit"]["group"], state["group"]) == (3, 3, 3)
    assert {entry["method"] for entry in calm.record(flood="group")} == {
        "editMessageText",
        "createForumTopic",
        "sendMessage",
    }
    assert not said(calm, "six")


def test_switching_it_off_lets_everything_pass_and_the_violations_stay_until_forgotten(calm: Sandbox) -> None:
    calm.flood_control(overall=1)
    assert [send(calm)["ok"] for _ in range(3)] == [True, False, False]
    calm.flood_control(False)
    assert all(send(calm)["ok"] for _ in range(5))
    assert calm.flood()["violations"] == 2
    assert calm.flood(forget=True)["violations"] == 0


def test_m16_uploads_of_one_size_in_a_row_are_refused_for_a_minute(calm: Sandbox) -> None:
    calm.flood_control(overall=1e6, private=1e6, burst=1e6)
    large, small = (("a.bin", bytes(size)) for size in (100_001, 100_000))
    codes = [upload(calm, "sendDocument", {}, document=large)[0] for _ in range(40)]
    assert codes[:6] == [200] * 6
    assert codes[-1] == 429
    (entry,) = calm.record(flood="same_size")[-1:]
    assert entry["description"].startswith("Too Many Requests: retry after ")
    assert calm.record(flood="same_size", description="retry after 60")
    assert upload(calm, "sendDocument", {}, document=small)[0] == 200


def test_m17_more_than_310_messages_of_one_chat_under_way_are_refused(calm: Sandbox) -> None:
    calm.flood_control(overall=1e6, private=1e6, burst=1e6)
    calm.hang("copyMessages", times=3)
    hundred = {"chat_id": calm.chat_id, "from_chat_id": calm.chat_id, "message_ids": list(range(1, 101))}
    host = calm.api_root.removeprefix("http://")
    waiting = [http.client.HTTPConnection(host, timeout=10) for _ in range(3)]
    for connection in waiting:
        head = {"Content-Type": "application/json"}
        connection.request("POST", f"/bot{calm.token}/copyMessages", json.dumps(hundred), head)
    calm.wait_for_record(3, method="copyMessages", fault="hang")
    assert send(calm)["ok"]
    refused = calm.call("copyMessages", **hundred)
    assert (refused["error_code"], refused["parameters"]) == (429, {"retry_after": 60})
    assert send(calm, chat_id=calm.forum_id)["ok"]
    for connection in waiting:
        connection.close()
    calm.wait_for_record(3, method="copyMessages", fault="hang", disconnected=True)
    calm.flood_control()  # what was spent is forgotten, and nothing is under way any more
    assert calm.call("copyMessages", **hundred).get("error_code") != 429
    assert send(calm)["ok"]
    assert calm.flood()["by_limit"]["under_way"] == 1


def test_a_limit_that_cannot_be_is_refused(calm: Sandbox) -> None:
    with pytest.raises(SandboxError, match="overall must be a number above 0"):
        calm.flood_control(overall=0)
    with pytest.raises(SandboxError, match="no speed"):
        calm.flood_control(speed=3)
    assert not calm.flood()["on"]


# -- faults ------------------------------------------------------------------------------------------------


def test_refusals_to_order_have_code_description_and_parameters(calm: Sandbox) -> None:
    calm.refuse("sendMessage", 403, "Forbidden: bot was kicked from the supergroup chat")
    calm.refuse("sendMessage", 429, parameters={"retry_after": 9})
    calm.refuse("sendMessage", 400, "Bad Request: x", parameters={"migrate_to_chat_id": -1009})
    answers = [send(calm, f"refused {number}") for number in range(4)]
    assert [answer.get("error_code") for answer in answers] == [403, 429, 400, None]
    assert answers[1]["parameters"] == {"retry_after": 9}
    assert answers[2]["parameters"] == {"migrate_to_chat_id": -1009}
    assert [said(calm, f"refused {number}") for number in range(4)] == [False, False, False, True]
    assert [entry["code"] for entry in calm.record(fault="refuse", search="refused ")] == [403, 429, 400]
    assert calm.record(fault="refuse", disconnected=True) == []


def test_an_answer_may_be_dropped_after_the_effect_or_with_the_call(calm: Sandbox) -> None:
    calm.drop_answer("sendMessage")
    with pytest.raises(http.client.RemoteDisconnected):
        send(calm, "done but not told")
    (entry,) = calm.record(search="done but not told")
    assert (entry["fault"]["does"], entry["ok"], entry["result"]["text"]) == ("drop", True, "done but not told")
    assert said(calm, "done but not told")
    calm.drop_call("sendMessage")
    with pytest.raises(http.client.RemoteDisconnected):
        send(calm, "never done")
    (entry,) = calm.wait_for_record(search="never done", open=False)
    assert (entry["ok"], entry["result"]) == (None, None)
    assert not said(calm, "never done")
    assert send(calm)["ok"]


def test_an_answer_may_be_cut_in_the_middle(calm: Sandbox) -> None:
    calm.cut_answer("sendMessage")
    with pytest.raises(http.client.IncompleteRead) as caught:
        send(calm, "cut in half")
    assert caught.value.partial.startswith(b'{"ok":true')
    assert said(calm, "cut in half")


def test_a_proxy_may_answer_with_a_page(calm: Sandbox) -> None:
    calm.bad_gateway("getMe")
    connection = http.client.HTTPConnection(calm.api_root.removeprefix("http://"), timeout=30)
    connection.request("GET", f"/bot{calm.token}/getMe")
    response = connection.getresponse()
    page = response.read()
    assert (response.status, response.headers["content-type"]) == (502, "text/html")
    assert b"<h1>502 Bad Gateway</h1>" in page
    connection.request("GET", f"/bot{calm.token}/getMe")  # the connection lives on
    assert json.loads(connection.getresponse().read())["ok"]
    connection.close()


@pytest.mark.parametrize("effect", [False, True])
def test_a_call_may_hang_until_its_client_goes(calm: Sandbox, effect: bool) -> None:
    text = f"hangs {effect}"
    calm.hang("sendMessage", effect=effect)
    connection = http.client.HTTPConnection(calm.api_root.removeprefix("http://"), timeout=30)
    body = json.dumps({"chat_id": calm.chat_id, "text": text})
    connection.request("POST", f"/bot{calm.token}/sendMessage", body, {"Content-Type": "application/json"})
    (entry,) = calm.wait_for_record(search=text, fault="hang")
    assert entry["ended"] is None
    connection.close()
    (entry,) = calm.wait_for_record(search=text, disconnected=True)
    assert entry["ended"] is None
    assert said(calm, text) is effect


def test_a_call_whose_client_goes_meanwhile_is_carried_out_all_the_same(calm: Sandbox) -> None:
    calm.order_fault("answer", method="sendMessage", lag=0.3)
    connection = http.client.HTTPConnection(calm.api_root.removeprefix("http://"), timeout=30)
    body = json.dumps({"chat_id": calm.chat_id, "text": "gone meanwhile"})
    connection.request("POST", f"/bot{calm.token}/sendMessage", body, {"Content-Type": "application/json"})
    calm.wait_for_record(search="gone meanwhile", fault="answer")
    connection.close()
    calm.wait_for_message("gone meanwhile")
    (entry,) = calm.wait_for_record(search="gone meanwhile", disconnected=True, ok=True)
    assert entry["ended"] is None


def test_answers_may_come_late(calm: Sandbox) -> None:
    calm.delay_answer("sendMessage", 0.2)
    assert send(calm, "late")["ok"]
    (entry,) = calm.record(slower=0.2, method="sendMessage", search="late")
    assert entry["ended"] - entry["began"] >= 0.2


def test_faults_strike_polls_too_when_they_are_meant(calm: Sandbox) -> None:
    calm.call("deleteWebhook", drop_pending_updates=True)
    calm.drop_answer("getUpdates")
    message = calm.say("given, but lost on the way")
    with pytest.raises(http.client.RemoteDisconnected):
        calm.call("getUpdates", offset=0)
    (update,) = calm.call("getUpdates", offset=0)["result"]  # was not confirmed, so it comes again
    assert update["message"]["message_id"] == message["message_id"]
    calm.refuse("getUpdates", 500)
    assert calm.call("getUpdates")["error_code"] == 500


def test_a_poll_that_waits_may_lose_its_answer(sandbox: Sandbox) -> None:
    sandbox.drop_answer("getUpdates")
    poller = Poller(sandbox, timeout=50)
    message = sandbox.say("lost on the way")
    with pytest.raises(http.client.RemoteDisconnected):
        poller.answer()
    (entry,) = sandbox.record(kind="poll")
    assert (entry["ok"], entry["fault"]["does"], entry["disconnected"]) == (True, "drop", None)
    (update,) = sandbox.call("getUpdates", offset=1)["result"]
    assert (entry["result"], update["message"]["message_id"]) == ([update["update_id"]], message["message_id"])


def test_a_wave_of_lost_threads_hits_all_threads_and_nothing_else(calm: Sandbox) -> None:
    threads = [calm.create_topic(name) for name in ("a", "b")]
    wave = calm.lose_threads()
    for thread in threads * 2:
        answer = send(calm, "x", message_thread_id=thread)
        assert (answer["error_code"], answer["description"]) == (400, "Bad Request: message thread not found")
    assert send(calm)["ok"]
    there = {"chat_id": calm.chat_id, "message_thread_id": threads[0]}
    assert calm.call("sendChatAction", action="typing", **there)["ok"]
    assert calm.call("editForumTopic", name="a", **there)["description"] == "Bad Request: TOPIC_NOT_MODIFIED"
    (fault,) = calm.faults()
    assert (fault["id"], fault["struck"]) == (wave, 4)
    assert calm.cancel_faults(wave) == 1
    assert all(send(calm, "x", message_thread_id=thread)["ok"] for thread in threads)


def test_a_fault_for_one_chat_leaves_the_others_alone(calm: Sandbox) -> None:
    calm.refuse("sends", 500, chat_id=calm.forum_id, times=0)
    assert send(calm)["ok"]
    assert send(calm, chat_id=calm.forum_id)["error_code"] == 500


def test_orders_that_cannot_be_are_refused_with_the_reason(calm: Sandbox) -> None:
    with pytest.raises(SandboxError, match="'does' must be in"):
        calm.order_fault("explode")
    with pytest.raises(SandboxError, match="a fault has no methods; it has does, method"):
        calm.order_fault("refuse", methods="sendMessage")
    with pytest.raises(SandboxError, match="'text' must be"):
        calm.order_fault("refuse", text=5)
    assert calm.faults() == []


# -- the server --------------------------------------------------------------------------------------------


def test_connections_are_refused_for_a_while_and_polls_are_cut(sandbox: Sandbox) -> None:
    poller = Poller(sandbox, timeout=50)
    sandbox.refuse_connections(1.5)
    with pytest.raises(ConnectionRefusedError):
        sandbox.call("getMe")
    with socket.socket() as greedy, pytest.raises(OSError, match="in use"):  # the port stays ours
        greedy.bind(("127.0.0.1", int(sandbox.api_root.rpartition(":")[2])))
    with pytest.raises(ConnectionError):
        poller.answer()
    assert sandbox.say("back again")["text"] == "back again"  # waits for the end of the outage
    assert sandbox.call("getMe")["ok"]
    (entry,) = sandbox.record(kind="poll")
    assert entry["disconnected"] is not None


def test_the_length_of_an_outage_must_be_an_amount(calm: Sandbox) -> None:
    for seconds in (0, -1, True, 1e9):
        with pytest.raises(SandboxError, match="seconds must be"):
            calm.refuse_connections(seconds)


def test_ids_may_restart_and_an_offset_of_before_is_ignored(sandbox: Sandbox) -> None:
    sandbox.say("before")
    (before,) = sandbox.call("getUpdates")["result"]
    sandbox.restart_ids(before["update_id"] // 2)
    sandbox.say("still counted on, for one waits")
    first, second = sandbox.call("getUpdates", offset=before["update_id"])["result"]
    assert second["update_id"] == first["update_id"] + 1
    assert sandbox.call("getUpdates", offset=second["update_id"] + 1)["result"] == []
    sandbox.say("after")
    (after,) = sandbox.call("getUpdates", offset=second["update_id"] + 1)["result"]
    assert after["update_id"] == before["update_id"] // 2
    assert after["message"]["text"] == "after"


def test_the_last_batch_may_come_again_although_it_was_confirmed(sandbox: Sandbox) -> None:
    sandbox.say("one")
    sandbox.say("two")
    batch = sandbox.call("getUpdates")["result"]
    offset = batch[-1]["update_id"] + 1
    poller = Poller(sandbox, offset=offset, timeout=50)
    assert sandbox.repeat_batch(2) == 2
    assert poller.answer()["result"] == batch
    sandbox.say("three")
    assert sandbox.call("getUpdates", offset=offset)["result"] == batch
    (three,) = sandbox.call("getUpdates", offset=offset)["result"]
    assert three["message"]["text"] == "three"


def test_the_state_and_its_changes_tell_of_trouble(calm: Sandbox) -> None:
    before = calm.state()["seq"]
    calm.flood_control(group=5)
    calm.refuse("getMe", 500)
    calm.call("getMe")
    state = calm.state()
    assert (state["flood"]["on"], state["flood"]["group"], state["faults"]) == (True, 5, [])
    changes = calm.get(f"/sandbox/changes?after={before}")["changes"]
    kinds = [change["kind"] for change in changes]
    assert kinds == ["flood", "faults", "faults"]
    assert [len(change["faults"]) for change in changes[1:]] == [1, 0]


# -- the record --------------------------------------------------------------------------------------------


def test_the_record_can_be_asked_by_many_fields(calm: Sandbox) -> None:
    calm.call("getMe")
    start = calm.record()[-1]["n"]
    send(calm, "Grüße an alle")
    send(calm, "lost", message_thread_id=987654)
    calm.call("getChat", chat_id=1)
    assert [entry["method"] for entry in calm.record(after=start, code=400)] == ["sendMessage", "getChat"]
    assert [entry["method"] for entry in calm.record(after=start, description="CHAT NOT")] == ["getChat"]
    assert [entry["params"]["text"] for entry in calm.record(after=start, search="GRÜßE AN")] == ["Grüße an alle"]
    assert [entry["n"] for entry in calm.record(after=start, search="987654")] == [start + 2]
    assert [entry["n"] for entry in calm.record(newest=1)] == [start + 3]
    first, *_ = calm.record(after=start)
    assert calm.record(after=start, until=first["began_at"])[0]["n"] == first["n"]
    assert calm.record(after=start, since=first["began_at"] + 3600) == []
    assert calm.record(after=start, slower=60) == []
    with pytest.raises(SandboxError):
        calm.record(code="many")
