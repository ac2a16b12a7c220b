"""A strict Bot API server with a chat page, for people without a token and for tests."""
