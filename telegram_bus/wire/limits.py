"""Every bound of a bus server in one place, each with its reason."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["DEFAULT_LIMITS", "KIB", "MIB", "Limits"]

KIB: Final = 1024
MIB: Final = 1024 * 1024


@frozen(kw_only=True)
class Limits:
    """What one peer, and all of them together, may take; bytes, counts and seconds."""

    connections: int = 8_192
    """Open at once; more wait in the listen backlog. A follower needs one, so this is no limit on followers."""

    unknown: int = 64
    """Connections that are read from though no request on them was accepted yet; more wait unread."""

    unknown_grace: float = 5.0
    """While there are more than `unknown` of them, those that are older than this go, the oldest first."""

    unknown_line: int = 64 * KIB
    """A line from an unknown peer. A registration has 1 KiB; 16 MiB here cost 883 MB under 50 flooders."""

    line: int = 16 * MIB
    """A line from a known peer: a handoff of 8 MiB (protocol section 7) with room for escapes."""

    half_lines: int = 64 * MIB
    """Unfinished lines of all peers together; beyond it the largest goes."""

    half_line_grace: float = 30.0
    """How long an unfinished line may stay as it is."""

    turn: int = 16
    """Requests of one peer that are handled before the others have their turn."""

    eager_pause: float = 0.001
    """How long a peer that sent more than `in_flight` requests at once waits after each of its turns."""

    in_flight: int = 64
    """Requests of one connection that are being worked on; it is not read from while there are so many."""

    descriptors: int = 40
    """Open files that came beside requests of one connection which are being worked on: four albums."""

    in_flight_bytes: int = 16 * MIB
    """The same in bytes of their lines; one line of any legal length may always be worked on."""

    refused_in_a_row: int = 100
    """Invalid and refused lines after which a connection is closed: its peer does not learn."""

    unsent_pause: int = 64 * KIB
    """Answers that a peer has not taken; with more of them it is not read from until it takes some."""

    unsent: int = 1 * MIB
    """The same, beside the largest answer of all; a peer that comes over it by late answers is closed."""

    unsent_grace: float = 10.0
    """How long a peer may take nothing of what waits for it."""

    sweep: float = 1.0
    """How often the times above are looked at: one task for all, since a deadline each costs 8 microseconds."""


DEFAULT_LIMITS: Final = Limits()
