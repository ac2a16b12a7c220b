"""The page's switches for trouble, and its search in the record, in a real Chromium."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from telegram_bus.testing import Sandbox

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Json = dict[str, Any]


@pytest.fixture
def page(browser: Browser, calm: Sandbox) -> Iterator[Page]:
    """The page with its panel open; it must not complain about anything."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(calm.page)
    opened.wait_for_selector(".thread")
    opened.get_by_label("Calls and settings").first.click()
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def trouble(page: Page) -> Page:
    """The page where trouble is made."""
    page.get_by_role("tab", name="Trouble").click()
    return page


def send(sandbox: Sandbox, text: str = "x", **params: Any) -> Json:
    return sandbox.call("sendMessage", **{"chat_id": sandbox.chat_id, "text": text, **params})


def test_flood_control_is_switched_set_and_counted(trouble: Page, calm: Sandbox) -> None:
    trouble.get_by_role("switch", name="Refuse what is too much").click()
    group = trouble.locator("#flood-group")
    group.fill("2")
    group.press("Tab")
    while calm.flood()["group"] != 2:
        trouble.wait_for_timeout(10)
    assert calm.flood()["on"]
    assert [send(calm, chat_id=calm.forum_id)["ok"] for _ in range(4)] == [True, True, False, False]
    trouble.wait_for_selector("#flood-count >> text=2 too early: group 2")
    trouble.get_by_role("button", name="Count anew").click()
    trouble.wait_for_selector("#flood-count >> text=no call came too early")
    assert calm.flood()["violations"] == 0


def test_a_limit_that_cannot_be_is_said(trouble: Page, calm: Sandbox) -> None:
    box = trouble.locator("#flood-overall")
    box.fill("-3")
    box.press("Tab")
    trouble.wait_for_selector(".toast.bad >> text=overall must be a number above 0")
    assert calm.flood()["overall"] == 30


def test_a_refusal_is_ordered_shown_and_used_up(trouble: Page, calm: Sandbox) -> None:
    trouble.get_by_label("Code").fill("403")
    trouble.get_by_label("Description").fill("Forbidden: bot was blocked by the user")
    trouble.get_by_label("How often").fill("2")
    trouble.get_by_role("button", name="Order").click()
    trouble.wait_for_selector(".fault >> text=sends: 403 Forbidden: bot was blocked by the user")
    trouble.wait_for_selector("#trouble-mark")
    assert send(calm)["description"] == "Forbidden: bot was blocked by the user"
    trouble.wait_for_selector(".fault >> text=struck 1")
    assert send(calm)["error_code"] == 403
    trouble.wait_for_selector(".fault", state="detached")
    assert send(calm)["ok"]


@pytest.mark.parametrize(
    ("kind", "does", "more"),
    [
        ("late", "answer", {"delay": 5}),
        ("drop", "drop", {}),
        ("lose", "drop", {"effect": False}),
        ("cut", "cut", {}),
        ("hang", "hang", {}),
        ("html", "html", {"code": 502}),
        ("wave", "refuse", {"threads": True, "code": 400, "description": "Bad Request: message thread not found"}),
    ],
)
def test_each_kind_of_fault_can_be_ordered(trouble: Page, calm: Sandbox, kind: str, does: str, more: Json) -> None:
    trouble.locator("#fault-kind").select_option(kind)
    assert trouble.get_by_label("Code").is_visible() is (kind == "refuse")
    assert trouble.get_by_label("Seconds", exact=True).is_visible() is (kind == "late")
    trouble.get_by_label("To which calls").fill("sendMessage")
    trouble.locator("#fault-where").select_option("here")
    trouble.get_by_label("How often").fill("0")
    trouble.get_by_role("button", name="Order").click()
    trouble.wait_for_selector(".fault")
    (fault,) = calm.faults()
    shown = {name: value for name, value in fault.items() if name not in {"id", "struck"}}
    assert shown == {"does": does, "method": "sendMessage", "chat_id": calm.chat_id, "times": 0, **more}
    trouble.get_by_label("Cancel the fault").click()
    trouble.wait_for_selector(".fault", state="detached")
    assert calm.faults() == []


def test_all_faults_go_at_once(trouble: Page, calm: Sandbox) -> None:
    for _ in range(3):
        calm.refuse("getMe", 500)
    trouble.wait_for_selector(".fault >> nth=2")
    trouble.get_by_role("button", name="Cancel all").click()
    trouble.wait_for_selector(".fault", state="detached")
    assert calm.faults() == []


def test_the_page_comes_back_after_an_outage_that_it_made(trouble: Page, calm: Sandbox) -> None:
    trouble.get_by_label("Away, s").fill("0.5")
    trouble.get_by_role("button", name="Refuse connections").click()
    trouble.wait_for_selector("#banner", state="visible")
    trouble.wait_for_selector("#banner", state="hidden")
    send(calm, "after the outage")
    trouble.wait_for_selector("article >> text=after the outage")


def test_batches_come_again_and_ids_restart(trouble: Page, calm: Sandbox) -> None:
    calm.call("deleteWebhook", drop_pending_updates=True)
    calm.say("given twice")
    batch = calm.call("getUpdates", offset=1)["result"]
    offset = batch[-1]["update_id"] + 1
    trouble.get_by_role("button", name="Give them again").click()
    trouble.wait_for_selector(f".toast >> text=The last {len(batch)} updates come again.")
    assert calm.call("getUpdates", offset=offset)["result"] == batch
    calm.call("getUpdates", offset=offset)
    trouble.get_by_role("button", name="Begin anew").click()
    trouble.wait_for_selector(".toast >> text=The next update begins anew.")
    calm.say("anew")
    (update,) = calm.call("getUpdates", offset=1)["result"]
    assert update["update_id"] != offset


def test_the_search_finds_what_the_page_never_loaded(page: Page, calm: Sandbox) -> None:
    calm.call("getMe", needle="in a haystack")
    page.reload()
    page.wait_for_selector(".thread")
    connection = http.client.HTTPConnection(calm.api_root.removeprefix("http://"), timeout=60)
    for _ in range(550):  # more than the page loads
        connection.request("GET", f"/bot{calm.token}/getMe")
        connection.getresponse().read()
    connection.close()
    page.get_by_label("Calls and settings").first.click()
    page.get_by_label("Search the calls").fill("haystack")
    page.wait_for_selector('.call >> text="getMe"')
    assert page.locator(".call").count() == 1


def test_calls_can_be_filtered_by_what_happened_to_them(page: Page, calm: Sandbox) -> None:
    calm.refuse("getChat", 500)
    calm.call("getChat", chat_id=calm.chat_id)
    calm.flood_control(private=0.01, burst=1)
    send(calm, "first")
    send(calm, "second")
    page.locator("#calls-filter").select_option("fault")
    page.wait_for_selector(".call >> text=to order")
    assert page.locator('.call:has-text("second")').count() == 0
    page.locator("#calls-filter").select_option("flood")
    page.wait_for_selector(".call >> text=too fast: private")
    assert page.locator('.call:has-text("first")').count() == 0


def test_the_tabs_work_by_keyboard_and_everything_has_a_name(trouble: Page) -> None:
    trouble.get_by_role("tab", name="Trouble").press("ArrowRight")
    assert trouble.get_by_role("tab", name="Settings").evaluate("tab => tab === document.activeElement")
    assert trouble.get_by_role("switch", name="Threaded Mode").is_visible()
    trouble.keyboard.press("ArrowRight")
    assert trouble.get_by_label("Search the calls").is_visible()
    trouble.keyboard.press("ArrowLeft")
    trouble.keyboard.press("ArrowLeft")
    nameless = trouble.evaluate(
        """() => [...document.querySelectorAll("button, a, select, textarea, input")].filter((item) =>
             !item.innerText?.trim() && !item.getAttribute("aria-label") && !item.labels?.length && item.offsetParent)
           .map((item) => item.outerHTML)"""
    )
    assert nameless == []
    trouble.keyboard.press("Escape")
    trouble.wait_for_selector("#panel", state="hidden")


def test_a_phone_has_room_for_trouble(browser: Browser, calm: Sandbox) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    page.goto(calm.page)
    page.click('[data-thread="0"]')
    page.get_by_label("Calls and settings").first.click()
    page.get_by_role("tab", name="Trouble").click()
    calm.refuse("sendMessage", 400, "Bad Request: " + "x" * 200)
    page.wait_for_selector(".fault")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("document.getElementById('panel-trouble').scrollWidth <= 360")
    context.close()
