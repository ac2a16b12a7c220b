"""The table of methods that the leader holds calls to is what the Bot API's documentation says."""

from __future__ import annotations

from tests.clients.method_table import PLACE, table


def test_the_table_of_methods_is_what_the_documentation_says_today() -> None:
    """If not: python -m tests.clients.method_table."""
    assert PLACE.read_text(encoding="utf-8") == table()
