"""Measurements of the bus beside a raw socket echo of the same run: `python -m benchmarks`."""
