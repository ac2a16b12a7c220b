"""By hand on the page, with a real bus: what a person does with threads, and in chats without any."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus, open_demo_bus
from tests.browser import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PATIENCE = 60_000  # ms; a successor takes a second or two on a machine that is busy
SHELL = 'while read -r line; do echo "shell heard $line"; done'


@contextmanager
def at_the_page(browser: Browser, directory: Path, *, forum: bool) -> Iterator[tuple[Page, DemoBus]]:
    with open_demo_bus(directory, place="forum" if forum else "private") as bus:
        bus.start("echo", [sys.executable, "-m", "telegram_bus.cli.demo_agent"])
        bus.start("shell", [*BUS, "follower", "--name", "shell", "--", "sh", "-c", SHELL])
        for name in ("echo", "shell"):
            bus.thread_of(name)
        address = bus.person.address
        chat = address["forum_id"] if forum else address["chat_id"]
        with opened(browser, f"{address['page']}#{address['chat_id']}/{chat}/0") as page:
            page.set_default_timeout(PATIENCE)
            page.wait_for_selector(".thread >> text=echo")
            yield page, bus


def menu(page: Page, thread: str, item: str) -> None:
    """What a right click on a thread offers."""
    page.locator(".thread", has_text=thread).first.click(button="right")
    page.get_by_role("menuitem", name=item).click()


def open_thread(page: Page, name: str) -> None:
    page.locator(".thread", has=page.locator(".thread-name", has_text=name)).click()
    page.wait_for_selector(f"header >> text={name}")


def new_thread(page: Page, name: str) -> None:
    page.get_by_role("button", name="New thread", exact=True).click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_selector(f"header >> text={name}")


def press(page: Page, label: str) -> None:
    page.locator(".key", has_text=label).last.click()


def write(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_each_thread_is_one_program_s_and_stays_so_when_the_leader_is_killed(browser: Browser, tmp_path: Path) -> None:
    """What is written in one thread is answered there only."""
    with at_the_page(browser, tmp_path, forum=False) as (page, bus):
        open_thread(page, "echo")
        write(page, "good morning")
        page.wait_for_selector("article.theirs >> text=You said: good morning")
        page.get_by_role("button", name="LOUDER").click()
        page.wait_for_selector("article.theirs >> text=GOOD MORNING!")

        open_thread(page, "shell")
        assert page.locator("article", has_text="good morning").count() == 0
        write(page, "anybody?")
        page.wait_for_selector("article.theirs >> text=shell heard anybody?")

        os.kill(bus.processes["leader"].pid, signal.SIGKILL)
        write(page, "still there?")
        page.wait_for_selector("article.theirs >> text=shell heard still there?")
        open_thread(page, "echo")
        assert page.locator("article", has_text="anybody").count() == 0
        write(page, "and you?")
        page.wait_for_selector("article.theirs >> text=You said: and you?")


def test_people_s_hands_in_a_private_chat(browser: Browser, tmp_path: Path) -> None:
    """Rename; a thread of nobody, given once and then for good; deletion; threads off and on."""
    with at_the_page(browser, tmp_path, forum=False) as (page, bus):
        menu(page, "shell", "Rename the thread")
        page.get_by_label("Name", exact=True).fill("Workshop")
        page.get_by_role("button", name="Rename", exact=True).click()
        open_thread(page, "Workshop")
        write(page, "still you?")
        page.wait_for_selector("article.theirs >> text=shell heard still you?")

        new_thread(page, "Ideas")
        write(page, "who reads this?")
        page.wait_for_selector("article.theirs >> text=No agent has this thread. 1 message waits: who shall get it?")
        write(page, "anybody?")
        press(page, "echo")
        page.wait_for_selector("article.theirs >> text=Given to echo: 2 messages.")
        open_thread(page, "echo")
        page.wait_for_selector("article.theirs >> text=who reads this?")
        page.wait_for_selector("article.theirs >> text=anybody?")

        open_thread(page, "Ideas")
        write(page, "and for good?")
        page.wait_for_selector("article.theirs >> text=1 message waits")
        press(page, "Make it someone's thread")
        page.wait_for_selector("article.theirs >> text=Whose thread shall this be")
        press(page, "Workshop")
        page.wait_for_selector("article.theirs >> text=shell heard and for good?")
        page.locator(".thread-name", has_text="Ideas").wait_for(state="detached")  # it is called as its agent is
        assert page.locator(".thread-name", has_text="Workshop").count() == 1

        new_thread(page, "Junk")
        menu(page, "Junk", "Delete the thread")
        page.get_by_role("button", name="Delete", exact=True).click()
        page.locator(".thread", has_text="Junk").wait_for(state="detached")

        page.get_by_label("This chat has threads").click()
        page.wait_for_selector(".thread >> text=Main chat")
        write(page, "hello?")
        page.wait_for_selector("article.theirs >> text=switch on Threaded Mode")
        page.wait_for_selector("article.theirs >> text=Whom do you write to?")
        press(page, "echo")
        page.wait_for_selector("article.theirs >> text=echo: You said: hello?")
        write(page, "/agents")
        page.wait_for_selector("article.theirs >> text=you write to it")

        page.get_by_label("This chat has threads").click()
        page.wait_for_selector(".thread >> text=echo")
        open_thread(page, "echo")
        write(page, "anybody?")  # the leader hears by this that there are threads again
        bus.thread_of("echo")
        write(page, "back again")
        page.wait_for_selector("article.theirs >> text=You said: back again")
        open_thread(page, "Workshop")
        write(page, "you too?")
        page.wait_for_selector("article.theirs >> text=shell heard you too?")


def test_people_s_hands_in_a_forum(browser: Browser, tmp_path: Path) -> None:
    """A closed thread is still answered; General is the leader's; without topics the group is shared by name."""
    with at_the_page(browser, tmp_path, forum=True) as (page, _):
        menu(page, "echo", "Close the thread")
        page.wait_for_selector(".thread >> text=closed")
        open_thread(page, "echo")
        write(page, "closed, but here")
        page.wait_for_selector("article.theirs >> text=You said: closed, but here")
        open_thread(page, "General")
        write(page, "/status")
        page.wait_for_selector("article.theirs >> text=last poll")
        page.wait_for_selector("article.theirs >> text=echo — here")

        page.get_by_label("This chat has threads").click()
        write(page, "/use shell")
        page.wait_for_selector("article.theirs >> text=switch on Topics in the group's settings")
        page.wait_for_selector("article.theirs >> text=You write to shell now")
        write(page, "in one room")
        page.wait_for_selector("article.theirs >> text=shell: shell heard in one room")
