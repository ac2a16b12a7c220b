"""What goes out to Telegram holds no token of the bot, whoever put it there, and can be written at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from telegram_bus.botapi.answers import form
from telegram_bus.botapi.transport import open_api
from telegram_bus.botapi.uploads import Upload, as_form_files
from telegram_bus.core.errors import RequestRefused
from tests.botapi.loopback import serve
from tests.botapi.test_transport import TOKEN, echo

SECRET = TOKEN.partition(":")[2]


@pytest.mark.parametrize("said", [TOKEN, SECRET, f"https://api.telegram.org/bot{TOKEN}/getMe", f"{SECRET} {SECRET}"])
async def test_a_message_that_shows_the_token_goes_out_without_it(said: str, caplog: pytest.LogCaptureFixture) -> None:
    """A wrapped shell that is told `cat config.toml`, say: what is in the chat stays at Telegram."""
    entity = {"type": "bold", "offset": len(said) + 1, "length": 1}
    markup = {"inline_keyboard": [[{"text": said}]]}
    params = {"chat_id": 1, "text": f"{said} x", "entities": [entity], "reply_markup": markup}
    async with serve(echo) as server, open_api(TOKEN, root=server.root) as api:
        fields = (await api.call("sendMessage", params))["fields"]
    assert SECRET not in json.dumps(fields)
    assert len(fields["text"]) == len(said) + 2, "entities count characters"
    assert fields["text"][entity["offset"]] == "x"
    assert "had the bot's token in it" in caplog.text


async def test_other_messages_go_out_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(echo) as server, open_api("1:a", root=server.root) as api:
        fields = (await api.call("sendMessage", {"chat_id": 1, "text": "a banana"}))["fields"]
    assert fields["text"] == "a banana", "a secret of one letter is a test's"
    assert not caplog.text


def test_a_name_that_cannot_be_written_is_written_all_the_same() -> None:
    """Else it looked as though the call might have gone out, and a person was asked to look into the chat."""
    [(name, value)] = form({"\ud800": "\udfff"}).items()
    assert (name.encode(), value.encode()) == ("\ufffd".encode(), "\ufffd".encode())


def test_a_file_that_cannot_be_read_was_surely_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    descriptor = os.open(path, os.O_WRONLY)
    try:
        [(_, reader)] = as_form_files((Upload(field="document", name="f", descriptor=descriptor, size=1),)).values()
        with pytest.raises(RequestRefused, match="f cannot be read"):
            reader.read(1)
    finally:
        os.close(descriptor)
