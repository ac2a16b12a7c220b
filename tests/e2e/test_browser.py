"""A person at the page, a real leader and two real followers: what is written in one thread is answered there only."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus, open_demo_bus
from tests.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PATIENCE = 60_000  # ms; a successor takes a second or two on a machine that is busy
SHELL = 'while read -r line; do echo "shell heard $line"; done'


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[DemoBus]:
    with open_demo_bus(tmp_path) as running:
        running.start("echo", [sys.executable, "-m", "telegram_bus.cli.demo_agent"])
        running.start("shell", [*BUS, "follower", "--name", "shell", "--", "sh", "-c", SHELL])
        for name in ("echo", "shell"):
            running.thread_of(name)
        yield running


@pytest.fixture
def page(bus: DemoBus) -> Iterator[Page]:
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
        opened = context.new_page()
        opened.set_default_timeout(PATIENCE)
        opened.goto(bus.person.address["page"])
        opened.wait_for_selector(".thread")
        yield opened
        context.close()


def open_thread(page: Page, name: str) -> None:
    page.locator(".thread", has_text=name).first.click()
    page.wait_for_selector(f"header >> text={name}")


def write(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_each_thread_is_one_program_s_and_stays_so_when_the_leader_is_killed(page: Page, bus: DemoBus) -> None:
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
