"""Pictures, files, polls and migrations on the page, in a real Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from telegram_bus.testing import Sandbox
from tests.samples import png

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_pictures_files_and_polls_are_shown(page: Page, sandbox: Sandbox) -> None:
    thread = sandbox.create_topic("files")
    page.click(f'[data-thread="{thread}"]')
    photo = sandbox.send_file(png(60, 40), "a.png", kind="photo", caption="a view", thread_id=thread)
    image = page.wait_for_selector("article.mine img[alt='a view']")
    assert image is not None
    page.wait_for_function("image => image.complete && image.naturalWidth === 60", arg=image)
    sandbox.send_file(b"x" * 1500, "notes.txt", thread_id=thread)
    page.get_by_label("File notes.txt").wait_for()
    assert page.get_by_text("1.5 kB").count() == 1
    with page.expect_download() as download:
        page.get_by_label("File notes.txt").click()
    assert download.value.suggested_filename == "notes.txt"
    reply = {"message_id": photo["message_id"]}
    sandbox.call("sendPoll", chat_id=sandbox.chat_id, question="Tea?", options=["yes"], message_thread_id=thread)
    page.wait_for_selector("article.theirs .poll >> text=Tea?")
    sandbox.call("sendMessage", chat_id=sandbox.chat_id, text="nice", reply_parameters=reply)
    page.wait_for_selector("article.theirs .quote >> text=a view")


def test_a_group_that_becomes_a_supergroup_goes_on_in_its_tab(page: Page, sandbox: Sandbox) -> None:
    page.get_by_role("tab", name="Group").or_(page.get_by_role("button", name="Group")).first.click()
    sandbox.say("before", chat_id=sandbox.group_id)
    page.wait_for_selector("article >> text=before")
    supergroup = sandbox.migrate(sandbox.group_id)
    sandbox.say("after", chat_id=supergroup)
    page.get_by_role("tab", name="Group").or_(page.get_by_role("button", name="Group")).first.click()
    page.wait_for_selector("article >> text=after")
