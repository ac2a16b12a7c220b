"""The two databases."""
