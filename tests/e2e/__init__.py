"""Real processes: leaders, followers, commands and people, over a sandbox."""
