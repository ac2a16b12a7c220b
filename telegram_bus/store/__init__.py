"""What must survive: one SQLite database a bot, one inbox a follower."""
