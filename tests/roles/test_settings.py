"""Settings come from options, environment and file in this order; each fault names its place and the cure."""

from __future__ import annotations

import logging
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.errors import SettingsError, StateError
from telegram_bus.home import Home, Profile
from telegram_bus.roles.option_values import Token
from telegram_bus.roles.options import OPTIONS, option
from telegram_bus.roles.settings import (
    Settings,
    load_settings,
    read_config,
    store_settings,
    stored_interpreter,
    to_toml,
)

TOKEN = "123:AAE-made-up"


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Home(tmp_path / "home").profile("work")
    made.ensure()
    return made


def load(profile: Profile, environment: dict[str, str] | None = None, **options: Any) -> Settings:
    surroundings = {"TELEGRAM_BOT_TOKEN": TOKEN} if environment is None else environment
    return load_settings(profile, options, surroundings)


def write_config(profile: Profile, text: str) -> None:
    profile.config_toml.write_text(text)
    profile.config_toml.chmod(0o600)


def test_a_token_and_a_persons_chat_are_enough(profile: Profile) -> None:
    settings = load(profile, chat="42")
    assert settings.token.reveal() == TOKEN
    assert settings == Settings(
        token=Token.parse(TOKEN),
        chat=42,
        allow=(42,),
        api_root="https://api.telegram.org",
        interpreter=Path(sys.executable),
        linger=900.0,
    )
    assert (settings.owner, settings.bot_id) == (42, 123)


def test_without_a_token_two_lines_say_what_to_do(profile: Profile) -> None:
    with pytest.raises(SettingsError) as caught:
        load(profile, {}, chat="42")
    first, second = str(caught.value).split("\n")
    assert "@BotFather" in first
    assert "TELEGRAM_BOT_TOKEN" in first
    assert "--token-file" in first
    assert "telegram-bus demo" in second


def test_an_option_wins_over_the_environment_and_that_over_the_file(profile: Profile) -> None:
    write_config(profile, f'token = "{TOKEN}"\nchat = 1\napi_root = "http://file"\nlinger = 1\n')
    environment = {"TELEGRAM_BUS_API_ROOT": "http://env", "TELEGRAM_BUS_LINGER": "2"}
    settings = load(profile, environment, api_root="http://Option:8081/")
    assert (settings.chat, settings.linger, settings.api_root) == (1, 2.0, "http://option:8081")


def test_empty_variables_and_options_that_were_not_given_do_not_count(profile: Profile) -> None:
    settings = load(profile, {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_BUS_LINGER": ""}, chat="1", linger=None)
    assert settings.linger == 900.0


def test_nothing_shows_the_token_by_accident(profile: Profile) -> None:
    settings = load(profile, chat="42")
    for text in (repr(settings), str(settings), f"{settings.token}", repr(settings.token), "%s" % settings.token):  # noqa: UP031
        assert "AAE" not in text
    assert repr(settings.token) == "<token of bot 123>"


@pytest.mark.parametrize("token", ["", "abc", "123", "123:", ":abc", "123:a b", "123:a/../b", "١٢٣:abc", 7, None])
def test_what_is_no_token_is_refused_without_showing_it(token: object) -> None:
    with pytest.raises(ValueError, match="is no bot token") as caught:
        Token.parse(token)
    assert not isinstance(token, str) or len(token) < 4 or token not in str(caught.value)


def test_a_fault_in_the_token_does_not_show_it_in_the_traceback(profile: Profile) -> None:
    with pytest.raises(SettingsError, match="TELEGRAM_BOT_TOKEN is no bot token") as caught:
        load(profile, {"TELEGRAM_BOT_TOKEN": "almost-a-token"}, chat="1")
    assert "almost" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_the_token_comes_from_a_file_or_a_command(profile: Profile, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f" {TOKEN}\n")
    file.chmod(0o600)
    command = f"{sys.executable} -c 'print(\"{TOKEN}\")'"
    assert load(profile, {}, chat="1", token_file=str(file)).token_file == file
    assert load(profile, {"TELEGRAM_BUS_TOKEN_FILE": str(file)}, chat="1").token == Token.parse(TOKEN)
    assert load(profile, {}, chat="1", token_command=command).token == Token.parse(TOKEN)
    # an option wins over the variable, whatever kind it is of
    assert load(profile, {"TELEGRAM_BOT_TOKEN": "9:other"}, chat="1", token_file=str(file)).bot_id == 123


def test_two_tokens_at_one_place_are_one_too_many(profile: Profile) -> None:
    with pytest.raises(SettingsError, match=r"in two ways.*--token-file.*--token-command"):
        load(profile, {}, chat="1", token_file="/x", token_command="y")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/nowhere/pass", "cannot run the token command"),
        ("'unclosed", "cannot run the token command"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "exit status 3"),
        (f"{sys.executable} -c 'print(5)'", "printed is no bot token"),
    ],
)
def test_a_token_command_that_gives_no_token_is_named(profile: Profile, command: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        load(profile, {}, chat="1", token_command=command)
    assert "--token-command" in str(caught.value)


def test_a_token_file_that_gives_no_token_is_named(profile: Profile, tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(SettingsError, match="cannot read the token"):
        load(profile, {}, chat="1", token_file=str(file))
    file.write_text("nothing of use")
    with pytest.raises(SettingsError, match=f"{file}.*--token-file.*is no bot token"):
        load(profile, {}, chat="1", token_file=str(file))
    file.chmod(0o666)
    with pytest.raises(SettingsError, match=f"chmod 600 {file}"):
        load(profile, {}, chat="1", token_file=str(file))


def test_a_token_file_that_others_may_read_is_taken_with_a_warning(
    profile: Profile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o444)  # as Docker mounts its secrets
    with caplog.at_level(logging.WARNING):
        assert load(profile, {}, chat="1", token_file=str(file)).bot_id == 123
    assert "others may read" in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("chat", "me", "--chat 'me' must be a number"),
        ("chat", "0", "must be a number"),
        ("allow", "12,x", "--allow '12,x' must be user ids"),
        ("allow", ["-5"], "must be user ids"),
        ("api_root", "api.telegram.org", "--api-root .* must be an address such as"),
        ("api_root", "https://x:port", "must be an address"),
        ("api_root", "https://x/?q=1", "must be an address"),
        ("api_root", "https://[::1", "must be an address"),
        ("proxy", "ftp://x", "--proxy .* such as http://127.0.0.1:3128"),
        ("linger", "soon", '--linger .* or "never"'),
        ("linger", "-1", "must be a time"),
        ("linger", "nan", "must be a time"),
        ("socket", "", "--socket '' is no text"),
        ("interpreter", "a\nb", "--interpreter .* is no text"),
    ],
)
def test_a_bad_value_is_named_with_its_option_and_what_would_be_right(
    profile: Profile, name: str, value: object, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        load_settings(profile, {"chat": "1"} | {name: value}, {"TELEGRAM_BOT_TOKEN": TOKEN})


def test_a_bad_value_of_the_environment_or_the_file_is_named_by_its_place(profile: Profile) -> None:
    with pytest.raises(SettingsError, match=r"\$TELEGRAM_BUS_CHAT 'x' must be a number"):
        load(profile, {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_BUS_CHAT": "x"})
    write_config(profile, 'chat = "x"\n')
    with pytest.raises(SettingsError, match=rf"chat in {profile.config_toml} 'x' must be a number"):
        load(profile)


def test_no_chat_is_a_fault_that_names_the_ways_to_give_one(profile: Profile) -> None:
    with pytest.raises(SettingsError, match=r"--chat, \$TELEGRAM_BUS_CHAT or chat in config.toml.*your own user id"):
        load(profile)


def test_a_group_needs_to_be_told_who_may_talk(profile: Profile) -> None:
    with pytest.raises(SettingsError, match=r"group.*--allow"):
        load(profile, chat="-100123")
    settings = load(profile, chat="-100123", allow=["7, 8", "9", "7"])
    assert (settings.allow, settings.owner) == ((7, 8, 9), 7)


def test_the_person_of_a_private_chat_must_be_allowed(profile: Profile) -> None:
    with pytest.raises(SettingsError, match="add 42"):
        load(profile, chat="42", allow="7")


def test_linger_never_is_no_limit(profile: Profile) -> None:
    assert load(profile, chat="1", linger="never").linger is None


def test_what_is_stored_is_what_a_successor_loads(profile: Profile) -> None:
    settings = load(
        profile,
        chat="-100123",
        allow="7 8",
        api_root="http://127.0.0.1:8081",
        socket='/run/a "b"\\c/ü.sock',
        secret_file="/x/secret",
        proxy="socks5://127.0.0.1:1080",
        linger="never",
        interpreter=sys.executable,
    )
    store_settings(profile, settings)
    assert profile.config_toml.stat().st_mode & 0o777 == 0o600
    assert load_settings(profile, {}, {}) == settings
    assert stored_interpreter(profile) == sys.executable


def test_a_token_file_or_command_is_stored_rather_than_the_token(profile: Profile, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    command = f"{sys.executable} -c 'print(\"{TOKEN}\")'"
    for name, value in (("token_file", str(file)), ("token_command", command)):
        store_settings(profile, load(profile, {}, chat="1", **{name: value}))
        config = read_config(profile)
        assert config[name] == value
        assert "token" not in config
        assert load_settings(profile, {}, {}).token == Token.parse(TOKEN)


def test_a_token_that_is_not_to_be_stored_leaves_no_successor(profile: Profile) -> None:
    store_settings(profile, load(profile, chat="1", store_token=False))
    assert TOKEN not in profile.config_toml.read_text()
    assert read_config(profile)["bot"] == 123
    assert stored_interpreter(profile) is None


def test_a_profile_without_settings_has_no_interpreter(profile: Profile) -> None:
    assert stored_interpreter(profile) is None


def test_settings_that_cannot_be_written_are_told_of_as_anything_that_cannot_be_stored(profile: Profile) -> None:
    """So that a leader copes with it as with a full disk."""
    settings = load(profile, chat="1")
    profile.config_toml.mkdir()
    with pytest.raises(StateError, match=r"cannot write .*config\.toml"):
        store_settings(profile, settings)


def test_settings_that_did_not_change_leave_a_persons_comments(profile: Profile) -> None:
    settings = load(profile, chat="1")
    store_settings(profile, settings)
    text = "# mine\n" + profile.config_toml.read_text()
    write_config(profile, text)
    store_settings(profile, settings)
    assert profile.config_toml.read_text() == text
    store_settings(profile, load(profile, chat="2"))
    assert read_config(profile)["chat"] == 2
    assert load_settings(profile, {}, {}).allow == (2,)


def test_another_bot_for_the_same_profile_needs_to_be_said(profile: Profile) -> None:
    store_settings(profile, load(profile, chat="1"))
    other = {"TELEGRAM_BOT_TOKEN": "456:BBF"}
    with pytest.raises(SettingsError, match=r"profile work serves bot 123.*456.*--other-bot"):
        load(profile, other)
    assert load(profile, other, other_bot=True).bot_id == 456


def test_a_damaged_file_is_named_with_its_line(profile: Profile) -> None:
    write_config(profile, "chat = 1\nallow = 1 2\n")
    with pytest.raises(SettingsError, match=r"config\.toml is damaged: .*line 2"):
        load(profile)
    profile.config_toml.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"config\.toml is damaged"):
        load(profile)


def test_an_unknown_key_is_named_since_it_may_be_a_slip(profile: Profile) -> None:
    write_config(profile, "allowed = [1]\n")
    with pytest.raises(SettingsError, match=r"unknown key 'allowed'; known are allow, api_root"):
        load(profile)
    write_config(profile, 'bot = "x"\n')
    with pytest.raises(SettingsError, match=r"bot in .* must be the bot's id"):
        load(profile)


def test_a_file_of_settings_that_others_may_read_is_refused(profile: Profile) -> None:
    write_config(profile, "chat = 1\n")
    profile.config_toml.chmod(0o644)
    with pytest.raises(SettingsError, match=f"chmod 600 {profile.config_toml}"):
        load(profile)


def test_the_interpreter_that_runs_now_succeeds_the_stored_one(profile: Profile) -> None:
    write_config(profile, 'interpreter = "/old/python"\n')
    assert load(profile, chat="1").interpreter == Path(sys.executable)
    assert load(profile, chat="1", interpreter="/new/python").interpreter == Path("/new/python")


@pytest.mark.parametrize(
    ("environment", "root", "proxy"),
    [
        ({"https_proxy": "http://p:1"}, "https://api.telegram.org", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.telegram.org", "http://p:1"),
        ({"ALL_PROXY": "socks5://p:1"}, "https://api.telegram.org", "socks5://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://api.telegram.org", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .telegram.org"}, "https://api.telegram.org", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "gram.org"}, "https://api.telegram.org", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, "https://api.telegram.org", None),
        ({"HTTPS_PROXY": "http://p:1", "TELEGRAM_BUS_PROXY": "none"}, "https://api.telegram.org", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://127.0.0.1:8081", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://localhost:8081", None),
        ({"HTTPS_PROXY": "http://p:1", "TELEGRAM_BUS_PROXY": "http://q:2"}, "https://api.telegram.org", "http://q:2"),
    ],
)
def test_the_usual_proxy_variables_count_and_are_stored_for_a_successor(
    profile: Profile, environment: dict[str, str], root: str, proxy: str | None
) -> None:
    settings = load(profile, environment | {"TELEGRAM_BOT_TOKEN": TOKEN}, chat="1", api_root=root)
    assert settings.proxy == proxy
    store_settings(profile, settings)
    assert load_settings(profile, {}, {}).proxy == proxy


def test_every_setting_has_one_clear_name_everywhere() -> None:
    for one in OPTIONS:
        assert option(one.name) is one
        assert one.help
        assert one.variable is None or one.variable.startswith("TELEGRAM_")
        assert one.key in {None, one.name}
        assert one.flag is None or one.flag.lstrip("-").removeprefix("no-").replace("-", "_") == one.name
        assert one.ways()
    for column in ("name", "flag", "variable"):
        named = [value for one in OPTIONS if (value := getattr(one, column))]
        assert len(named) == len(set(named))
    assert option("token").flag is None, "a token never stands in a command line"
    with pytest.raises(SettingsError, match="no setting named 'x'"):
        option("x")


SCALARS = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,10}", fullmatch=True), SCALARS | st.lists(st.integers(0, 9))))
def test_what_is_written_as_toml_reads_the_same(content: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(content)) == content
