"""Telegram: transport, poller and sender."""
