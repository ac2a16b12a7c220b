"""The long-lived roles: leader and member."""
