"""Conformance with the recordings of the reference."""
