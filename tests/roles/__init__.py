"""A leader and its followers, part by part, in memory and on a virtual clock."""
