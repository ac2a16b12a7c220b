"""Polls and quizzes: sending, stopping, and their end by time."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_formatted, utf16_length
from telegram_bus.sandbox.methods.contents import read_location
from telegram_bus.sandbox.methods.finding import read_keyboard
from telegram_bus.sandbox.methods.media import read_media
from telegram_bus.sandbox.methods.messages import edited, find_editable
from telegram_bus.sandbox.methods.posting import find_place, put
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import close_poll
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "sendpoll", "stoppoll"]

MAX_QUESTION = 300
MAX_OPTION = 100
MAX_OPTIONS = 12
MAX_EXPLANATION = 200
OPEN_PERIOD = (5, 2_628_000)  # seconds


def sendpoll(world: World, args: Args, now: float) -> Json:
    """sendPoll."""
    question, entities = read_formatted(args, "question", "question_entities", "question_parse_mode")
    if not question:
        raise bad_request("poll question must be non-empty")
    if len(question) > MAX_QUESTION:
        raise bad_request(f"poll question length must not exceed {MAX_QUESTION}")
    options = _options(world, args)
    poll: Json = {
        "id": str(world.rng.randrange(10**17, 10**18)),
        "question": question,
        "options": options,
        "total_voter_count": 0,
        "is_closed": args.flag("is_closed"),
        "is_anonymous": args.flag("is_anonymous") if args.has("is_anonymous") else True,
        "type": args.text("type") or "regular",
        "allows_multiple_answers": args.flag("allows_multiple_answers"),
        "allows_revoting": args.text("type") != "quiz",
        "members_only": args.flag("members_only"),
    }
    if custom := [entity for entity in entities if entity["type"] == "custom_emoji"]:
        poll["question_entities"] = custom
    if poll["type"] == "quiz":
        poll |= _quiz(args, len(options)) | _media(world, args, "explanation_media")
    elif poll["type"] != "regular":
        raise bad_request("unsupported poll type specified")
    poll |= _end(args, now) | _media(world, args, "media")
    place = find_place(world, args, "can_send_polls")
    message = put(world, place, now, content={"poll": poll})
    if "close_date" in poll and not poll["is_closed"]:
        world.closing[poll["id"]] = (float(poll["close_date"]), message)
    return world.view(message)


def stoppoll(world: World, args: Args, now: float) -> Json:
    """stopPoll."""
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    poll = message.content.get("poll")
    if poll is None:
        raise bad_request("message with poll to stop not found")
    if poll["is_closed"]:
        raise bad_request("poll has already been closed")
    message.reply_markup = keyboard
    close_poll(world, message, now)
    edited(world, message, now)
    closed: Json = message.content["poll"]
    return closed


METHODS = (sendpoll, stoppoll)


def _options(world: World, args: Args) -> list[Json]:
    given = args.parsed("options", "can't parse options JSON object")
    if not isinstance(given, list):
        raise bad_request("expected an Array of String as options")
    if not given:
        raise bad_request("poll must have at least 1 option")
    if len(given) > MAX_OPTIONS:
        raise bad_request(f"poll can't have more than {MAX_OPTIONS} options")
    return [_option(world, item, args, str(number)) for number, item in enumerate(given)]


def _option(world: World, item: Any, parts: Args, number: str) -> Json:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise bad_request("option must be an Object with a text")
    text, _ = read_formatted(Args(item), "text", "text_entities", "text_parse_mode")
    if not text:
        raise bad_request("poll options must be non-empty")
    if len(text) > MAX_OPTION:
        raise bad_request(f"poll options length must not exceed {MAX_OPTION}")
    option: Json = {"persistent_id": number, "text": text, "voter_count": 0}
    if item.get("media") is not None:
        option["media"] = _poll_media(world, item["media"], parts)
    return option


def _quiz(args: Args, options: int) -> Json:
    given = args.parsed("correct_option_ids", "can't parse correct option identifiers JSON object")
    if given is None and args.has("correct_option_id"):
        given = [args.integer("correct_option_id")]
    if not isinstance(given, list) or not given or not all(type(item) is int and 0 <= item < options for item in given):
        raise bad_request("wrong correct option ID specified")
    quiz: Json = {"correct_option_ids": sorted(set(given))}
    text, entities = read_formatted(args, "explanation", "explanation_entities", "explanation_parse_mode")
    if utf16_length(text) > MAX_EXPLANATION:
        raise bad_request("MESSAGE_TOO_LONG")
    if text:
        quiz |= {"explanation": text, "explanation_entities": entities}
    return quiz


def _end(args: Args, now: float) -> Json:
    low, high = OPEN_PERIOD
    period, date = args.integer("open_period"), args.integer("close_date")
    if period:
        if not low <= period <= high:
            raise bad_request("wrong poll open period specified")
        return {"open_period": period, "close_date": int(now) + period}
    return {"close_date": date} if date > now else {}


def _media(world: World, args: Args, name: str) -> Json:
    given = args.parsed(name, "can't parse InputMedia JSON object")
    return {} if given is None else {name: _poll_media(world, given, args)}


def _poll_media(world: World, item: Any, parts: Args) -> Json:
    if isinstance(item, dict) and item.get("type") == "location":
        return {"location": read_location(Args(item))}
    content: Json = read_media(world, item, parts)["content"]
    return content
