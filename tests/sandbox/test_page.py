"""The chat page in a real Chromium: what a person sees and does there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from telegram_bus.testing import Sandbox

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Json = dict[str, Any]


@pytest.fixture
def sandbox(shared: Sandbox) -> Sandbox:
    """One sandbox for all: each test has threads of its own and begins with an empty queue."""
    shared.call("deleteWebhook", drop_pending_updates=True)
    return shared


def topic(sandbox: Sandbox, name: str) -> int:
    made = sandbox.call("createForumTopic", chat_id=sandbox.chat_id, name=name)
    return int(made["result"]["message_thread_id"])


def send(sandbox: Sandbox, text: str, thread: int, **more: Any) -> Json:
    answer = sandbox.call("sendMessage", chat_id=sandbox.chat_id, message_thread_id=thread, text=text, **more)
    result: Json = answer["result"]
    return result


def open_thread(page: Page, thread: int) -> None:
    page.click(f'[data-thread="{thread}"]')


def write(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_what_is_typed_in_one_thread_stays_in_it(page: Page, sandbox: Sandbox) -> None:
    amber, juniper = topic(sandbox, "amber"), topic(sandbox, "juniper")
    open_thread(page, amber)
    write(page, "is anybody there?")
    said = sandbox.wait_for_message("is anybody there?", thread_id=amber, by_bot=False)
    send(sandbox, "amber is", amber, reply_parameters={"message_id": said["message_id"]})
    page.wait_for_selector("article.theirs >> text=amber is")
    open_thread(page, juniper)
    page.wait_for_selector("text=created the thread “juniper”")
    assert page.locator("article").count() == 0


def test_buttons_turn_until_they_are_answered(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}, {"text": "No", "callback_data": "n"}]]}
    sent = send(sandbox, "Shall I?", thread, reply_markup=keyboard)
    open_thread(page, thread)
    page.get_by_role("button", name="Yes").click()
    page.wait_for_selector(".key.busy")
    updates = sandbox.call("getUpdates", timeout=5)["result"]
    (query,) = [update["callback_query"] for update in updates if "callback_query" in update]
    assert (query["data"], query["message"]["message_id"]) == ("y", sent["message_id"])
    sandbox.call("answerCallbackQuery", callback_query_id=query["id"], text="noted")
    page.wait_for_selector(".toast >> text=noted")
    page.wait_for_selector(".key.busy", state="detached")


def test_typing_drafts_and_edits_are_live(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    there = {"chat_id": sandbox.chat_id, "message_thread_id": thread}
    open_thread(page, thread)
    sandbox.call("sendChatAction", action="typing", **there)
    page.wait_for_selector(".bubble.typing")
    sandbox.call("sendMessageDraft", draft_id=1, text="so fa", **there)
    page.wait_for_selector(".bubble.draft >> text=so fa")
    sent = send(sandbox, "so far", thread)
    page.wait_for_selector(".bubble.draft", state="detached")
    sandbox.call("editMessageText", chat_id=sandbox.chat_id, message_id=sent["message_id"], text="so good")
    page.wait_for_selector("article >> text=so good")
    page.wait_for_selector("article >> text=edited")
    sandbox.call("deleteMessage", chat_id=sandbox.chat_id, message_id=sent["message_id"])
    page.wait_for_selector("article", state="detached")


def test_a_person_edits_reacts_and_deletes(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "mistakes")
    open_thread(page, thread)
    write(page, "helo")
    page.wait_for_selector("article.mine")
    page.get_by_label("Message", exact=True).press("ArrowUp")
    write(page, "hello")
    page.wait_for_selector("article.mine >> text=hello")
    edited = [update for update in sandbox.call("getUpdates", timeout=5)["result"] if "edited_message" in update]
    assert edited[0]["edited_message"]["text"] == "hello"
    page.hover("article.mine")
    page.get_by_label("React", exact=True).click()
    page.get_by_label("React with 👍").click()
    page.wait_for_selector(".reaction.own")
    page.get_by_label("Delete", exact=True).click()
    page.locator("#ask-ok").click()
    page.wait_for_selector("article", state="detached")
    assert [message for message in sandbox.messages(thread_id=thread) if "text" in message] == []


def test_it_says_in_words_where_one_looks_behind_the_scenes_and_who_one_is(page: Page) -> None:
    way = page.get_by_role("button", name="Behind the scenes")
    assert way.inner_text() == "Behind the scenes"
    way.click()
    page.wait_for_selector("#panel")
    assert page.locator("#acting-disc").inner_text() == "O"
    page.select_option("#acting", index=1)
    page.locator("#acting-disc", has_text="F").wait_for()


def test_a_person_makes_renames_and_deletes_a_thread(page: Page, sandbox: Sandbox) -> None:
    page.click("#new-thread")
    page.get_by_role("textbox", name="Name").fill("mine")
    page.keyboard.press("Enter")
    thread = sandbox.wait_for_topic("mine")
    page.wait_for_selector(f'[data-thread="{thread}"][aria-current="true"]')
    page.get_by_label("Rename the thread").click()
    page.get_by_role("textbox", name="Name").fill("yours")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chat-name >> text=yours")
    page.get_by_label("Delete the thread").click()
    page.locator("#ask-ok").click()
    page.wait_for_selector(f'[data-thread="{thread}"]', state="detached")
    assert thread not in [topic["thread_id"] for topic in sandbox.topics()]


def test_markup_is_shown_and_never_becomes_html(page: Page, sandbox: Sandbox) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    thread = topic(sandbox, evil[:60])
    send(sandbox, evil, thread)
    send(sandbox, "<b>bold</b> <code>x&lt;y</code>", thread, parse_mode="HTML")
    open_thread(page, thread)
    page.wait_for_selector("article strong >> text=bold")
    assert page.locator("article code").inner_text() == "x<y"
    assert page.locator("article .text").first.inner_text() == evil
    assert page.locator("article img, article script, .thread img").count() == 0


def test_reload_and_reconnection_lose_nothing(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    open_thread(page, thread)
    send(sandbox, "first", thread)
    page.wait_for_selector("article >> text=first")
    page.get_by_label("Message", exact=True).fill("half a thought")
    page.reload()
    page.wait_for_selector("article >> text=first")
    assert page.get_by_label("Message", exact=True).input_value() == "half a thought"
    page.context.set_offline(True)
    send(sandbox, "second", thread)
    page.context.set_offline(False)
    page.wait_for_selector("article >> text=second")


def test_unread_threads_are_marked_until_opened(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    send(sandbox, "one", thread)
    send(sandbox, "two", thread)
    page.wait_for_selector(f'[data-thread="{thread}"] .unread >> text=2')
    open_thread(page, thread)
    page.wait_for_selector(f'[data-thread="{thread}"] .unread', state="detached")


def test_another_person_writes_in_their_own_chat(page: Page, sandbox: Sandbox) -> None:
    page.get_by_label("Writing as").select_option(label="Frank Friend")
    write(page, "I am Frank")
    page.wait_for_selector("article.mine >> text=I am Frank")
    (update,) = sandbox.call("getUpdates", timeout=5)["result"]
    assert update["message"]["from"]["first_name"] == "Frank"
    assert update["message"]["chat"]["id"] != sandbox.chat_id


def test_a_phone_shows_the_list_or_the_chat(browser: Browser, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.goto(sandbox.page)
    page.wait_for_selector(".thread")
    assert not page.locator("#composer").is_visible()
    open_thread(page, thread)
    write(page, "from my phone")
    page.wait_for_selector("article.mine")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_label("Back to the threads").click()
    assert page.locator(".side").is_visible()
    assert not page.locator("#composer").is_visible()
    context.close()


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    send(sandbox, "hello", thread, reply_markup={"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]})
    open_thread(page, thread)
    page.wait_for_selector(".key")
    page.keyboard.press("Alt+ArrowUp")  # the thread with the newest message is the first below the main chat
    page.wait_for_selector('[data-thread="0"][aria-current="true"]')
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_selector(".key")
    page.locator(".key").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".key.busy")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, a, select, textarea, input")].filter((item) =>
             !item.innerText?.trim() && !item.getAttribute("aria-label") && !item.labels?.length)
           .map((item) => item.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("main").count() == 1
    assert re.fullmatch(r"amber · .+", page.title())


def test_calls_are_shown_behind_the_scenes_and_can_be_searched(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    page.get_by_label("Calls and settings").first.click()
    send(sandbox, "needle", thread)
    page.wait_for_selector(".call >> text=needle")
    page.get_by_label("Search the calls").fill("needle")
    page.wait_for_selector(".call:nth-child(1)")
    assert page.locator(".call").count() == 1
    page.locator(".call summary").click()
    assert '"text": "needle"' in page.locator(".call pre").first.inner_text()
    page.get_by_label("Search the calls").fill("message thread not found")
    sandbox.call("sendMessage", chat_id=sandbox.chat_id, message_thread_id=9999, text="x")
    page.wait_for_selector(".call.refused >> text=400")


def test_threaded_mode_can_be_switched(page: Page, sandbox: Sandbox) -> None:
    page.get_by_label("Calls and settings").first.click()
    page.get_by_role("tab", name="Settings").click()
    switch = page.get_by_role("switch", name="Threaded Mode")
    assert switch.is_checked()
    switch.click()
    page.wait_for_selector("#new-thread", state="hidden")
    assert sandbox.call("getMe")["result"]["has_topics_enabled"] is False
    switch.click()
    page.wait_for_selector("#new-thread")


def test_focus_survives_what_happens_meanwhile(page: Page, sandbox: Sandbox) -> None:
    thread = topic(sandbox, "amber")
    keyboard = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}, {"text": "B", "callback_data": "b"}]]}
    sent = send(sandbox, "choose", thread, reply_markup=keyboard)
    open_thread(page, thread)
    page.get_by_role("button", name="B", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".key.busy")
    assert page.evaluate("document.activeElement.textContent") == "B"
    edit = {"chat_id": sandbox.chat_id, "message_id": sent["message_id"], "reply_markup": keyboard}
    sandbox.call("editMessageText", text="chosen", **edit)
    page.wait_for_selector("article >> text=chosen")
    assert page.evaluate("document.activeElement.textContent") == "B"
    topic(sandbox, "newer")  # comes before the other, which comes back with the next message
    page.wait_for_selector(".thread >> text=newer")
    page.locator(f'[data-thread="{thread}"]').focus()
    send(sandbox, "more", thread)
    page.wait_for_selector(f'[data-thread="{thread}"] >> text=more')
    assert page.evaluate("document.activeElement.dataset.thread") == str(thread)
