"""Sending what is neither text nor a file: places, contacts, dice."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import read_keyboard
from telegram_bus.sandbox.methods.messages import NOT_MODIFIED, edited, find_editable
from telegram_bus.sandbox.methods.posting import find_place, put
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "DICE", "METHODS", "editmessagelivelocation", "read_location", "sendcontact", "senddice", "sendlocation",
    "sendvenue", "stopmessagelivelocation",
]  # fmt: skip

# Emoji and how many values each can show.
DICE = {"🎲": 6, "🎯": 6, "🎳": 6, "🏀": 5, "⚽": 5, "🎰": 64}
MAX_LIVE = 86_400  # seconds
FOREVER = 0x7FFFFFFF
_VENUE_TEXTS = ("foursquare_id", "foursquare_type", "google_place_id", "google_place_type")


def sendlocation(world: World, args: Args, now: float) -> Json:
    """sendLocation, also one that moves (live_period)."""
    location = read_location(args)
    period = args.integer("live_period")
    if period and period != FOREVER and not 60 <= period <= MAX_LIVE:
        raise bad_request("wrong live location period specified")
    if period:
        location["live_period"] = period
    place = find_place(world, args)
    return world.view(put(world, place, now, content={"location": location}))


def editmessagelivelocation(world: World, args: Args, now: float) -> Json:
    """editMessageLiveLocation."""
    location = read_location(args)
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    old = message.content.get("location", {})
    if "live_period" not in old:
        raise bad_request("message can't be edited")
    moved = location | {"live_period": args.integer("live_period", old["live_period"])}
    if moved == old and keyboard == message.reply_markup:
        raise bad_request(NOT_MODIFIED)
    message.content, message.reply_markup = {"location": moved}, keyboard
    return edited(world, message, now)


def stopmessagelivelocation(world: World, args: Args, now: float) -> Json:
    """stopMessageLiveLocation."""
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    old = message.content.get("location", {})
    if "live_period" not in old:
        raise bad_request("message can't be edited")
    message.content = {"location": {name: value for name, value in old.items() if name != "live_period"}}
    message.reply_markup = keyboard
    return edited(world, message, now)


def sendvenue(world: World, args: Args, now: float) -> Json:
    """sendVenue."""
    venue: Json = {"location": read_location(args)}
    for name in ("title", "address"):
        if not args.text(name).strip():
            raise bad_request(f"venue {name} must be non-empty")
        venue[name] = args.text(name).strip()
    venue |= {name: args.text(name) for name in _VENUE_TEXTS if args.has(name)}
    if "google_place_id" in venue:
        # One provider each; the older one gives way.
        venue = {name: value for name, value in venue.items() if not name.startswith("foursquare")}
    place = find_place(world, args)
    return world.view(put(world, place, now, content={"venue": venue, "location": venue["location"]}))


def sendcontact(world: World, args: Args, now: float) -> Json:
    """sendContact."""
    contact: Json = {}
    for name, missing in (("phone_number", "phone number is empty"), ("first_name", "first name is empty")):
        if not args.text(name).strip():
            raise bad_request(missing)
        contact[name] = args.text(name).strip()
    contact |= {name: args.text(name) for name in ("last_name", "vcard") if args.has(name)}
    place = find_place(world, args)
    return world.view(put(world, place, now, content={"contact": contact}))


def senddice(world: World, args: Args, now: float) -> Json:
    """sendDice."""
    emoji = (args.text("emoji") or "🎲").replace("\ufe0f", "")
    if emoji not in DICE:
        raise bad_request("EMOTICON_INVALID")
    place = find_place(world, args, "can_send_other_messages")
    dice = {"emoji": emoji, "value": world.rng.randint(1, DICE[emoji])}
    return world.view(put(world, place, now, content={"dice": dice}))


METHODS = (sendlocation, editmessagelivelocation, stopmessagelivelocation, sendvenue, sendcontact, senddice)


def read_location(args: Args) -> Json:
    """A Location of `latitude` and `longitude`; raises `Refusal`."""
    location: Json = {}
    for name, limit in (("latitude", 90.0), ("longitude", 180.0)):
        value = args.number(name)
        if value is None or abs(value) > limit:
            raise bad_request(f"{name} is empty" if not args.has(name) else f"wrong {name} specified")
        location[name] = value
    accuracy = args.number("horizontal_accuracy")
    if accuracy:
        location["horizontal_accuracy"] = accuracy
    for name in ("heading", "proximity_alert_radius"):
        if args.integer(name):
            location[name] = args.integer(name)
    return location
