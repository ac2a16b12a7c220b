"""The documentation says what the program says: commands, settings, kinds, errors and names stand where they belong."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, get_args

import attrs
import pytest

import telegram_bus
from telegram_bus.cli import faults
from telegram_bus.cli import main as command_line
from telegram_bus.cli.main import COMMANDS
from telegram_bus.core import codec, errors, health, identity, payloads, values
from telegram_bus.core.permissions import COMPATIBLE, OWN, Policy
from telegram_bus.roles import member
from telegram_bus.roles.options import OPTIONS, Option

ROOT: Final = Path(__file__).parents[1]
STATES: Final = tuple(state for state in health.STATES if state != "stopped")
OPERATORS_PATHS: Final = re.compile(r"(?<![\w.])/(?:work|root)(?:/|\b)")
REGISTRIES: Final = re.compile(
    r"index[-]url|find[-]links|\b(?:pypi|pythonhosted|npmjs|registry|mirror)[\w.-]*\.(?:org|com|net|io)\b"
)


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(name: str, heading: str) -> str:
    """What stands below a heading, down to the next one of any level."""
    match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", read(name), re.MULTILINE | re.DOTALL)
    assert match, f"{name} has no heading {heading!r}"
    return match.group(1)


def rows(text: str) -> list[list[str]]:
    """The cells of all tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {index for index, row in enumerate(cells) if set("".join(row)) <= set("- ")}
    return [row for index, row in enumerate(cells) if index not in rules and index + 1 not in rules]


def coded(text: str) -> set[str]:
    """All that is in backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def missing(names: Iterable[str], text: str) -> list[str]:
    """Those of the names that are nowhere in the text as words."""
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def options_of(command: str) -> Iterator[str]:
    subparsers = argparse.ArgumentParser().add_subparsers()
    module = importlib.import_module(COMMANDS[command][0])
    module.add_parser(subparsers)
    for action in subparsers.choices[command]._actions:
        if action.help != argparse.SUPPRESS:
            yield from action.option_strings


def kebab(heading: str) -> str:
    """GitHub's anchor of a heading."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    skipped = {".venv", ".git", "dist", "build"}  # an unpacked archive
    return [p for p in ROOT.rglob("*") if p.is_file() and not skipped.intersection(p.relative_to(ROOT).parts)]


def pages() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_and_each_of_its_options_is_described(command: str) -> None:
    text = read("docs/commands.md")
    assert f"`{command}`" in text
    assert re.search(rf"^## .*\b{command}\b", text, re.MULTILINE)
    wanted = [option for option in options_of(command) if option not in {"-h", "--help"}]
    assert missing(wanted, text) == []


def commands_in(text: str) -> list[list[str]]:
    """The words behind `telegram-bus` in lines and spans of code, but for mere names and what stands for something."""
    lines = text.replace("\\\n", " ").splitlines()
    code = [line for line in lines if line.startswith("  ")]
    code += [span for line in lines for span in re.findall(r"`([^`]+)`", line)]
    found = [match for line in code for match in re.findall(r"(?:^|[\s(|;&])telegram-bus +([a-z-].*)", line)]
    return [words_of(one) for one in found if not re.search(r"[…<]|\w\|\w|COMMAND|^\w+\W?$", one)]


def words_of(line: str) -> list[str]:
    """The words of one command of a shell, without what is piped, redirected or said about it."""
    lexer = shlex.shlex(re.split(r" {3,}", line)[0], posix=True, punctuation_chars="|&;>")
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: word[0] not in "|&;>", lexer))


def test_each_command_that_is_shown_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    texts = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages()}
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            command_line._parse([command, "--help"])
        texts[f"{command} --help"] = capsys.readouterr().out
    shown = [(name, words) for name, text in texts.items() for words in commands_in(text)]
    assert len(shown) > 60
    wrong = []
    for name, words in shown:
        try:
            command_line._parse(words)
        except SystemExit as end:
            if end.code:
                wrong.append((name, words, capsys.readouterr().err.splitlines()[0]))
    assert wrong == []


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_setting_has_a_row_that_says_how_it_is_given(option: Option) -> None:
    table = rows(section("docs/commands.md", "Settings"))
    found = [row for row in table if {f"`{option.flag}`", f"`{option.variable}`"} & set(row[:2])]
    assert len(found) == 1
    flag, variable, key, default, _meaning = found[0]
    assert option.flag is None or flag == f"`{option.flag}`"
    assert variable == (f"`{option.variable}`" if option.variable else "")
    assert key == (f"`{option.key}`" if option.key else "")
    assert default == option.default_text


def test_the_table_of_settings_has_no_row_too_many() -> None:
    assert len(rows(section("docs/commands.md", "Settings"))) == len(OPTIONS)


def test_each_environment_variable_is_described() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "telegram_bus").rglob("*.py"))
    others = set(re.findall(r"[\"']\$?((?:TELEGRAM|XDG)_[A-Z_]*[A-Z]|NO_COLOR)[\"']", sources))
    variables = {option.variable for option in OPTIONS if option.variable} | others
    assert len(variables) > len([option for option in OPTIONS if option.variable])
    assert missing(variables, read("docs/commands.md")) == []


def test_each_exit_code_is_described() -> None:
    codes = {str(getattr(faults, name)) for name in faults.__all__ if name.isupper()}
    assert {row[0] for row in rows(section("docs/commands.md", "Exit codes"))} == codes


@pytest.mark.parametrize("state", STATES)
def test_each_state_of_a_leader_is_explained(state: str) -> None:
    assert f"`{state}`" in section("docs/commands.md", "status")
    assert f"`{state}`" in [row[0] for row in rows(section("docs/troubleshooting.md", "What the leader says"))]


@pytest.mark.parametrize("phase", get_args(member.Phase))
def test_each_state_of_a_follower_is_explained(phase: str) -> None:
    assert f"`{phase}`" in [row[0] for row in rows(section("docs/python.md", "States"))]
    assert f"`{phase}`" in [row[0] for row in rows(section("docs/troubleshooting.md", "What a follower says"))]


def test_each_error_is_explained_and_those_that_a_program_meets_also_in_the_api() -> None:
    classes = {name for name in errors.__all__ if inspect.isclass(getattr(errors, name))}
    assert {row[0].strip("`") for row in rows(section("docs/troubleshooting.md", "Errors"))} == classes
    public = classes & set(telegram_bus.__all__)
    assert {row[0].strip("`") for row in rows(section("docs/python.md", "Errors"))} == public


@pytest.mark.parametrize(
    ("page", "heading"), [("docs/protocol.md", "The answer"), ("docs/troubleshooting.md", "Refusals")]
)
def test_each_code_of_a_refusal_is_explained(page: str, heading: str) -> None:
    assert coded(section(page, heading)) >= set(get_args(values.ErrorCode))


@pytest.mark.parametrize("kind", codec.kinds())
def test_each_kind_of_envelope_stands_in_the_protocol_with_its_fields(kind: str) -> None:
    text = read("docs/protocol.md")
    assert f"`{kind}`" in text
    assert missing(fields_of(codec.kinds()[kind]), text) == []


@pytest.mark.parametrize(
    "model",
    [
        values.Registration,
        values.ProtocolIdentity,
        values.Delivery,
        values.AgentSelector,
        values.AgentMessage,
        payloads.Prompt,
        payloads.Control,
        payloads.AdmissionReceipt,
        payloads.Attachment,
        payloads.TransportStamp,
    ],
)
def test_each_field_of_what_envelopes_carry_stands_in_the_protocol(model: type) -> None:
    assert missing(fields_of(model), read("docs/protocol.md")) == []


def fields_of(model: Any) -> list[str]:
    return [re.sub(r"_([a-z])", lambda match: match.group(1).upper(), one.name) for one in attrs.fields(model)]


@pytest.mark.parametrize("capability", [identity.DURABLE_ADMISSION, identity.EXTENSIONS, identity.QUEUE_HANDOFF])
def test_each_capability_is_described_and_said_to_be_announced_or_not(capability: str) -> None:
    row = next(row for row in rows(section("docs/protocol.md", "Identity")) if row[0] == f"`{capability}`")
    assert ("Not announced" in row[1]) == (capability not in identity.ANNOUNCED)


@pytest.mark.parametrize(
    ("heading", "policy"), [("The compatible policy", COMPATIBLE), ("Our own policy", OWN)], ids=["compatible", "own"]
)
def test_the_tables_of_calls_are_those_of_the_policies(heading: str, policy: Policy) -> None:
    calls: set[str] = set()
    marked: set[tuple[str, str]] = set()
    for row in rows(section("docs/protocol.md", heading)):
        names = coded(row[0])
        markers = {name.removesuffix(": true") for name in names if name.startswith("__")}
        methods = {name for name in names if not name.startswith("__")}
        if markers:
            marked |= {(method, marker) for method in methods for marker in markers}
        else:
            calls |= methods
    assert calls == set(policy.calls)
    assert marked == set(policy.marked)


@pytest.mark.parametrize("name", telegram_bus.__all__)
def test_each_public_name_is_in_the_api(name: str) -> None:
    assert missing([name], read("docs/python.md")) == []


@pytest.mark.parametrize(
    "thing",
    [telegram_bus.Bus, telegram_bus.Update, telegram_bus.SentMessage, telegram_bus.MemberInfo],
    ids=lambda thing: thing.__name__,
)
def test_each_attribute_and_each_parameter_of_a_public_class_is_in_the_api(thing: Any) -> None:
    text = read("docs/python.md")
    names = [name for name in dir(thing) if not name.startswith("_")]
    assert missing(names, text.replace("bus.", "").replace("update.", "")) == []
    for name in names:
        if inspect.isfunction(method := getattr(thing, name)):
            assert missing([one for one in inspect.signature(method).parameters if one != "self"], text) == []


def test_the_signature_of_join_is_the_documented_one() -> None:
    documented = re.search(r"`telegram_bus\.(join\([^`]*\))`", read("docs/python.md"))
    assert documented
    call = ast.parse(f"def {documented.group(1)}: pass").body[0]
    assert isinstance(call, ast.FunctionDef)
    parameters = inspect.signature(telegram_bus.join).parameters
    assert [one.arg for one in (*call.args.args, *call.args.kwonlyargs)] == list(parameters)
    defaults = [ast.literal_eval(one) for one in (*call.args.defaults, *call.args.kw_defaults) if one is not None]
    assert defaults == [one.default for one in parameters.values()]


def test_the_follower_of_the_readme_is_the_one_that_the_api_begins_with() -> None:
    """The latter is run by `test_doc_examples`."""
    indented = re.search(r"^    import trio\n(?:    .*\n|\n)+", read("README.md"), re.MULTILINE)
    fenced = re.search(r"^```python\n(.*?)^```", read("docs/python.md"), re.MULTILINE | re.DOTALL)
    assert indented
    assert fenced
    assert inspect.cleandoc(indented.group()) == inspect.cleandoc(fenced.group(1))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\[[^\]\n]*\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{target} does not exist"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            assert anchor in {kebab(heading) for heading in headings}, f"{target} is no heading"


def test_the_changelog_names_the_version() -> None:
    assert re.search(rf"^## {re.escape(telegram_bus.__version__)}\b", read("CHANGELOG.md"), re.MULTILINE)


def test_no_file_names_a_path_of_a_build_machine_or_a_registry() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        hits = [hit.group() for pattern in (OPERATORS_PATHS, REGISTRIES) if (hit := pattern.search(text))]
        hits += [place for place in {str(ROOT), str(Path.home())} if len(place) > len("/home") and place in text]
        if hits:
            found.append((str(path.relative_to(ROOT)), hits))
    assert found == []
