"""The tests; each directory is that of a package under test."""
