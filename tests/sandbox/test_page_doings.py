"""What a person can do on the page, each once, held against the control's state; in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from telegram_bus.testing import Sandbox
from tests.samples import png

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FilePayload, Locator, Page

pytestmark = pytest.mark.browser

Json = dict[str, Any]


@pytest.fixture
def sandbox(shared: Sandbox) -> Sandbox:
    """One sandbox for all: each test has threads of its own and begins with an empty queue."""
    shared.call("deleteWebhook", drop_pending_updates=True)
    return shared


def upload(name: str, mime: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": mime, "buffer": content}


def person(sandbox: Sandbox, name: str) -> int:
    (found,) = [user["id"] for user in sandbox.state()["users"] if user["first_name"] == name]
    return int(found)


def chat_of(sandbox: Sandbox, chat_id: int) -> Json:
    (found,) = [chat for chat in sandbox.state()["chats"] if chat["id"] == chat_id]
    return dict(found)


def until(page: Page, holds: Callable[[], Any]) -> Any:
    """What comes true within the page's time, as soon as it does."""
    for _ in range(1500):
        if found := holds():
            return found
        page.wait_for_timeout(10)
    raise AssertionError("it did not come true")


def updates(sandbox: Sandbox, kind: str) -> list[Json]:
    return [update[kind] for update in sandbox.updates() if kind in update]


def show(page: Page, sandbox: Sandbox, thread: int = 0, *, chat: int = 0, user: str = "Olivia") -> None:
    """Go to a place by its address, as a bookmark would."""
    me = person(sandbox, user)
    page.locator(f'[data-thread="{thread}"]').wait_for()  # it has heard of a thread that was just made
    page.goto(f"{sandbox.page}#{me}/{chat or me}/{thread}")
    page.locator("#acting option:checked", has_text=user).wait_for(state="attached")
    page.wait_for_selector(f'[data-thread="{thread}"][aria-current="true"]')


def message_box(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def write(page: Page, text: str) -> None:
    message_box(page).fill(text)
    page.keyboard.press("Enter")


def tool(page: Page, message: Json, label: str) -> None:
    page.hover(f'article[data-message="{message["message_id"]}"]')
    page.locator(f'[data-message="{message["message_id"]}"]').get_by_label(label, exact=True).click()


def settings(page: Page) -> None:
    page.get_by_label("Calls and settings").first.click()
    page.get_by_role("tab", name="Settings").click()


# -- files -------------------------------------------------------------------------------------------


def test_chosen_files_are_shown_before_they_go_out_as_albums_with_a_caption(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("holiday")
    show(page, sandbox, thread)
    pictures = [upload(f"{name}.png", "image/png", png(30, 20)) for name in "ab"]
    page.locator("#attach-input").set_input_files([*pictures, upload("notes.txt", "text/plain", b"notes")])
    page.wait_for_function("document.querySelectorAll('.tray img').length === 2")
    page.wait_for_function("[...document.querySelectorAll('.tray img')].every(image => image.naturalWidth === 30)")
    page.locator("#attach-input").set_input_files([upload("wrong.txt", "text/plain", b"not this one")])
    page.get_by_label("Do not send wrong.txt").click()
    assert page.locator(".tray li").count() == 3
    write(page, "the harbour")
    page.get_by_label("Album of 2").wait_for()
    page.get_by_label("File notes.txt").wait_for()
    first, second, notes = [message for message in sandbox.messages(thread_id=thread) if "date" in message][-3:]
    assert (first["caption"], first["media_group_id"]) == ("the harbour", second["media_group_id"])
    assert "caption" not in second
    assert sandbox.file(notes["document"]["file_id"]) == b"notes"
    assert page.locator(".tray").is_hidden()
    assert message_box(page).input_value() == ""


def test_pictures_can_go_as_files(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("originals")
    show(page, sandbox, thread)
    page.locator("#attach-input").set_input_files([upload("a.png", "image/png", png(30, 20))])
    page.get_by_label("send as files").check()
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_label("File a.png").wait_for()
    assert sandbox.messages(thread_id=thread)[-1]["document"]["mime_type"] == "image/png"


def test_a_dropped_file_waits_for_its_caption(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("dropped")
    show(page, sandbox, thread)
    transfer = page.evaluate_handle(
        """() => { const carried = new DataTransfer();
             carried.items.add(new File(["dropped"], "d.txt", {type: "text/plain"})); return carried; }"""
    )
    page.dispatch_event("#messages", "dragover", {"dataTransfer": transfer})
    page.get_by_text("Drop the files to send them here").wait_for()
    page.dispatch_event("#messages", "drop", {"dataTransfer": transfer})
    page.get_by_label("Do not send d.txt").wait_for()
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_label("File d.txt").wait_for()
    assert sandbox.file(sandbox.messages(thread_id=thread)[-1]["document"]["file_id"]) == b"dropped"


def test_a_reload_keeps_files_answers_and_edits_that_were_begun(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("unfinished")
    asked = sandbox.call("sendMessage", chat_id=sandbox.chat_id, message_thread_id=thread, text="which?")["result"]
    show(page, sandbox, thread)
    page.locator("#attach-input").set_input_files([upload("a.txt", "text/plain", b"kept")])
    tool(page, asked, "Reply")
    message_box(page).fill("this one")
    page.reload()
    page.get_by_label("Do not send a.txt").wait_for()
    page.wait_for_selector("#context >> text=which?")
    message_box(page).press("Enter")
    page.get_by_label("File a.txt").wait_for()
    sent = sandbox.messages(thread_id=thread)[-1]
    assert (sent["caption"], sent["reply_to_message"]["message_id"]) == ("this one", asked["message_id"])
    message_box(page).fill("something else")
    tool(page, sent, "Edit")
    message_box(page).fill("that one")
    page.reload()
    page.wait_for_selector("#context >> text=Edit message")
    assert message_box(page).input_value() == "that one"
    message_box(page).press("Enter")
    page.wait_for_selector("article.mine >> text=that one")
    assert sandbox.messages(thread_id=thread)[-1]["caption"] == "that one"
    assert message_box(page).input_value() == "something else"


def test_a_sandbox_that_starts_again_finds_the_page_as_it_was(browser: Browser, tmp_path: Path) -> None:
    with Sandbox("--data", str(tmp_path)) as first:
        thread = first.create_topic("goes on")
        first.say("before", thread_id=thread)
        page = browser.new_page()
        page.set_default_timeout(15_000)
        page.goto(first.page)
        show(page, first, thread)
        page.locator("#attach-input").set_input_files([upload("a.txt", "text/plain", b"kept")])
        message_box(page).fill("half a thought")
        port = str(urlsplit(first.page).port)
    page.wait_for_selector("#banner")
    with Sandbox("--data", str(tmp_path), "--port", port) as second:
        page.wait_for_selector("#banner", state="hidden")
        page.wait_for_selector("article >> text=before")
        page.get_by_label("Do not send a.txt").wait_for()
        message_box(page).press("Enter")
        page.get_by_label("File a.txt").wait_for()
        assert second.messages(thread_id=thread)[-1]["caption"] == "half a thought"
        page.close()


# -- messages ----------------------------------------------------------------------------------------


def test_an_answer_shows_what_it_answers_and_leads_there(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("questions")
    there = {"chat_id": sandbox.chat_id, "message_thread_id": thread}
    asked = sandbox.call("sendMessage", text="why?", **there)["result"]
    show(page, sandbox, thread)
    tool(page, asked, "Reply")
    write(page, "because")
    said = sandbox.wait_for_message("because", thread_id=thread, by_bot=False)
    assert said["reply_to_message"]["message_id"] == asked["message_id"]
    page.locator("button.quote").click()
    page.wait_for_selector(f'[data-message="{asked["message_id"]}"].meant')


def test_messages_are_pinned_shown_above_the_thread_and_unpinned(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("pins")
    said = [sandbox.say(text, thread_id=thread) for text in ("first", "second")]
    show(page, sandbox, thread)
    for message in said:
        tool(page, message, "Pin")
    page.wait_for_selector("#pins >> text=Pinned message 2 of 2")
    assert chat_of(sandbox, sandbox.chat_id)["pinned"] == [message["message_id"] for message in said]
    page.locator("#pin-show").click()
    page.wait_for_selector("#pins >> text=first")
    page.get_by_label("Unpin this message").click()
    page.wait_for_selector("#pins >> text=second")
    page.get_by_label("Unpin this message").click()
    page.wait_for_selector("#pins", state="hidden")
    assert chat_of(sandbox, sandbox.chat_id)["pinned"] == []


def test_reactions_of_the_bot_and_of_people_are_shown_and_given(page: Page, sandbox: Sandbox) -> None:
    said = sandbox.say("good news", chat_id=sandbox.forum_id)
    where = {"chat_id": sandbox.forum_id, "message_id": said["message_id"]}
    show(page, sandbox, chat=sandbox.forum_id, user="Frank")
    sandbox.call("setMessageReaction", reaction=[{"type": "emoji", "emoji": "🔥"}], **where)
    page.get_by_label("🔥 by Sandbox Bot").click()
    page.get_by_label(re.compile("🔥 by Sandbox Bot, Frank")).wait_for()
    sandbox.call("getUpdates", allowed_updates=["message_reaction"])
    page.get_by_label(re.compile("🔥 by Sandbox Bot, Frank")).click()
    page.get_by_label("🔥 by Sandbox Bot", exact=True).wait_for()
    reaction = updates(sandbox, "message_reaction")[-1]
    assert (reaction["user"]["first_name"], reaction["new_reaction"]) == ("Frank", [])


def test_one_reacts_with_the_keyboard_alone(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("keys")
    said = sandbox.say("press a key", thread_id=thread)
    show(page, sandbox, thread)
    page.locator("article").focus()
    for key in ("Tab", "Enter", "Escape", "Enter", "Tab", "Enter"):  # React opened, shut, opened, the second emoji
        page.keyboard.press(key)
    page.wait_for_selector(".reaction.own")
    assert page.evaluate("document.activeElement.ariaLabel") == "React"
    (shown,) = [item for item in sandbox.messages(thread_id=thread) if item["message_id"] == said["message_id"]]
    assert shown["reactions"] == [{"emoji": "❤", "by": [sandbox.chat_id]}]


def test_one_votes_and_takes_the_vote_back(page: Page, sandbox: Sandbox) -> None:
    poll = {"chat_id": sandbox.forum_id, "question": "Tea?", "options": ["green", "black", "none"]}
    sandbox.call("getUpdates", allowed_updates=["poll_answer"])
    one = sandbox.call("sendPoll", is_anonymous=False, **poll)["result"]
    several = sandbox.call("sendPoll", is_anonymous=False, allows_multiple_answers=True, **poll)["result"]
    show(page, sandbox, chat=sandbox.forum_id, user="Frank")
    first = page.locator(f'[data-message="{one["message_id"]}"]')
    first.get_by_role("button", name="black").click()
    first.get_by_role("button", name="black, 1 vote").wait_for()
    first.get_by_role("button", name="Take the vote back").click()
    first.get_by_text("0 votes").wait_for()
    second = page.locator(f'[data-message="{several["message_id"]}"]')
    second.get_by_role("button", name="green").click()
    second.get_by_role("button", name="none").click()
    sandbox.vote(several, 1)
    second.get_by_text("1 vote").wait_for()
    second.get_by_role("button", name="Vote", exact=True).click()
    second.get_by_role("button", name="none, 1 vote").wait_for()
    frank = person(sandbox, "Frank")
    answers = [answer["option_ids"] for answer in updates(sandbox, "poll_answer") if answer["user"]["id"] == frank]
    assert answers == [[1], [], [0, 2]]
    page.reload()
    second.get_by_role("button", name="none, 1 vote").wait_for()


def test_a_draft_that_grows_survives_a_reload_and_can_be_stopped(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("essay")
    there = {"chat_id": sandbox.chat_id, "message_thread_id": thread, "draft_id": 7, "can_stop": True}
    show(page, sandbox, thread)
    sandbox.call("getUpdates", allowed_updates=["stopped_message_generation"])
    for text in ("Once", "Once upon"):
        sandbox.call("sendMessageDraft", text=text, **there)
        page.wait_for_selector(f".draft >> text='{text}'")
    page.reload()
    page.wait_for_selector(".draft >> text='Once upon'")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".draft", state="detached")
    assert updates(sandbox, "stopped_message_generation")[0]["draft_id"] == 7


def test_a_pressed_button_turns_on_after_a_reload(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("buttons")
    keyboard = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}
    where = {"chat_id": sandbox.chat_id, "message_thread_id": thread}
    sandbox.call("getUpdates", allowed_updates=["callback_query"])
    sandbox.call("sendMessage", text="ready?", reply_markup=keyboard, **where)
    show(page, sandbox, thread)
    page.get_by_role("button", name="Go").click()
    page.wait_for_selector(".key.busy")
    page.reload()
    page.wait_for_selector(".key.busy")
    query = updates(sandbox, "callback_query")[-1]
    sandbox.call("answerCallbackQuery", callback_query_id=query["id"], text="stopped", show_alert=True)
    page.wait_for_selector("#ask >> text=stopped")
    page.keyboard.press("Escape")
    page.wait_for_selector(".key:not(.busy)")


# -- people and places -------------------------------------------------------------------------------


def test_a_topic_of_the_forum_is_made_renamed_closed_reopened_and_deleted(page: Page, sandbox: Sandbox) -> None:
    show(page, sandbox, chat=sandbox.forum_id)
    page.click("#new-thread")
    page.get_by_role("textbox", name="Name").fill("releases")
    page.keyboard.press("Enter")
    thread = sandbox.wait_for_topic("releases", chat_id=sandbox.forum_id)
    page.get_by_label("Rename the thread").click()
    page.get_by_role("textbox", name="Name").fill("versions")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chat-name >> text=versions")
    page.get_by_label("Close the thread").click()
    page.get_by_label("Writing as").select_option(label="Frank Friend")
    page.wait_for_selector("#obstacle >> text=The thread is closed")
    assert [topic["closed"] for topic in sandbox.topics(chat_id=sandbox.forum_id)] == [True]
    page.get_by_label("Reopen the thread").click()
    write(page, "open again")
    sandbox.wait_for_message("open again", chat_id=sandbox.forum_id, thread_id=thread, by_bot=False)
    page.get_by_label("Delete the thread").click()
    page.locator("#ask-ok").click()
    page.wait_for_selector("#chat-name >> text=General")
    assert sandbox.topics(chat_id=sandbox.forum_id) == []


def test_a_thread_has_a_menu_for_the_mouse_and_for_the_keyboard(page: Page, sandbox: Sandbox) -> None:
    """Which gives the focus back where it came from."""
    show(page, sandbox, chat=sandbox.forum_id)
    thread = sandbox.create_topic("drafts", chat_id=sandbox.forum_id)
    entry = page.locator(f'[data-thread="{thread}"]')
    entry.click(button="right")
    menu = page.get_by_role("menu", name="drafts")
    assert [item.inner_text() for item in menu.get_by_role("menuitem").all()] == [
        "Rename the thread", "Close the thread", "Delete the thread",
    ]  # fmt: skip
    page.keyboard.press("Escape")
    menu.wait_for(state="hidden")
    entry.focus()
    page.keyboard.press("ContextMenu")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".closed-mark >> text=closed")
    assert [one["closed"] for one in sandbox.topics(chat_id=sandbox.forum_id) if one["thread_id"] == thread] == [True]
    entry.click(button="right")
    page.get_by_role("menuitem", name="Delete the thread").click()
    page.keyboard.press("Enter")
    entry.wait_for(state="detached")


def test_the_switch_in_the_list_turns_threads_off_and_on(page: Page, sandbox: Sandbox) -> None:
    """The bot's in a private chat, the group's in a group, where it is the owner's alone."""
    switch = page.get_by_label("This chat has threads")
    show(page, sandbox)
    switch.click()
    page.wait_for_selector("#list-title >> text=Threads off")
    assert sandbox.state()["settings"]["threaded_mode"] is False
    switch.click()
    page.wait_for_selector("#new-thread:visible")
    show(page, sandbox, chat=sandbox.forum_id)
    switch.click()
    until(page, lambda: not chat_of(sandbox, sandbox.forum_id).get("is_forum"))
    switch.click()
    until(page, lambda: chat_of(sandbox, sandbox.forum_id).get("is_forum"))
    page.get_by_label("Writing as").select_option(label="Frank Friend")
    switch.wait_for(state="hidden")


def test_the_owner_decides_what_the_bot_may_do_in_the_forum(page: Page, sandbox: Sandbox) -> None:
    show(page, sandbox, chat=sandbox.forum_id)
    settings(page)
    page.get_by_role("switch", name="Manage topics").click()
    page.get_by_role("switch", name="Manage topics", checked=False).wait_for()
    made = sandbox.call("createForumTopic", chat_id=sandbox.forum_id, name="x")
    assert made["description"] == "Bad Request: not enough rights to create a topic"
    page.get_by_label("The bot is").select_option(label="an ordinary member")
    page.wait_for_selector("#chat-status >> text=bot: member")
    assert page.get_by_role("switch", name="Manage topics").count() == 0
    page.get_by_role("switch", name="Privacy mode").click()
    until(page, lambda: not sandbox.state()["settings"]["privacy"])
    sandbox.settings(privacy=True)
    page.get_by_label("The bot is").select_option(label="an administrator")
    page.get_by_role("switch", name="Manage topics", checked=True).wait_for()
    page.get_by_role("switch", name="General is closed").click()
    page.get_by_role("switch", name="General is closed", checked=True).wait_for()
    assert chat_of(sandbox, sandbox.forum_id)["general"]["closed"]
    page.get_by_label("Reopen the thread").click()
    page.get_by_role("switch", name="General is closed", checked=False).wait_for()
    page.get_by_label("Title of the group").fill("The Yard")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chat-status >> text=The Yard")
    assert chat_of(sandbox, sandbox.forum_id)["title"] == "The Yard"


def test_a_stranger_starts_the_bot_blocks_it_and_writes_again(page: Page, sandbox: Sandbox) -> None:
    sam = person(sandbox, "Sam")
    show(page, sandbox)
    page.get_by_label("Writing as").select_option(label="Sam Stranger")
    page.get_by_role("button", name="Start").click()
    assert sandbox.wait_for_message("/start", chat_id=sam, by_bot=False)["from"]["id"] == sam
    settings(page)
    page.get_by_role("switch", name="The bot is blocked").click()
    page.get_by_role("switch", name="The bot is blocked", checked=True).wait_for()
    assert sandbox.call("sendMessage", chat_id=sam, text="hello")["error_code"] == 403
    write(page, "sorry")
    page.get_by_role("switch", name="The bot is blocked", checked=False).wait_for()
    assert sandbox.call("sendMessage", chat_id=sam, text="hello")["ok"]


def test_who_left_a_group_can_join_again(page: Page, sandbox: Sandbox) -> None:
    show(page, sandbox, chat=sandbox.group_id, user="Frank")
    settings(page)
    page.get_by_role("switch", name="Frank is a member").click()
    page.wait_for_selector("#obstacle >> text=Frank is not in this group")
    page.wait_for_selector("text=Frank left")
    assert person(sandbox, "Frank") not in chat_of(sandbox, sandbox.group_id)["members"]
    page.get_by_role("button", name="Join").click()
    write(page, "back again")
    sandbox.wait_for_message("back again", chat_id=sandbox.group_id, by_bot=False)


def test_without_threads_a_private_chat_shows_everything_in_one(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("before")
    sandbox.say("in a thread", thread_id=thread)
    show(page, sandbox, thread)
    settings(page)
    page.get_by_role("switch", name="Threaded Mode").click()
    page.wait_for_selector(".thread >> nth=1", state="detached")
    page.wait_for_selector("article >> text=in a thread")
    write(page, "all in one")
    said = sandbox.wait_for_message("all in one", by_bot=False)
    assert "message_thread_id" not in said
    page.wait_for_selector("article >> text=all in one")
    page.get_by_role("switch", name="Threaded Mode").click()
    page.locator(f'[data-thread="{thread}"]').click()
    page.wait_for_selector("article >> text=in a thread")
    assert page.get_by_text("all in one").locator("visible=true").count() <= 1


def test_a_phone_has_room_for_all_of_it(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("on the way, with a name that is rather long for a phone")
    sandbox.send_album(
        [{"kind": "photo", "content": png(90, 60), "name": "a.png", "caption": ""} for _ in range(3)], thread_id=thread
    )
    sandbox.call(
        "sendPoll", chat_id=sandbox.chat_id, message_thread_id=thread, question="Where to?",
        options=["a" * 90, "b c " * 20],
    )  # fmt: skip
    sandbox.pin(sandbox.say("x" * 200, thread_id=thread))
    show(page, sandbox, thread)
    page.set_viewport_size({"width": 360, "height": 700})
    page.locator("#attach-input").set_input_files(
        [upload(f"{number}.png", "image/png", png(9, 6)) for number in range(6)]
    )
    page.wait_for_selector(".tray li >> nth=5")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator(".scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    send = page.get_by_role("button", name="Send", exact=True).bounding_box()
    assert send is not None
    assert send["x"] + send["width"] <= 360
    settings(page)
    assert page.locator("#panel-settings").evaluate("box => box.scrollWidth <= box.clientWidth")
