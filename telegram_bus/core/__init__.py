"""What is true and what may happen: pure functions and values, no I/O, no clock, no randomness."""
