"""Suites and clients that others wrote judge the sandbox."""
