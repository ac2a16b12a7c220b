"""Telegram's client side: pure decisions, a virtual clock, and real servers on the loopback."""
