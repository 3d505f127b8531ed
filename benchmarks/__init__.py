"""Measurements of the library beside its peers: `python -m benchmarks [GROUP ...]`.

A group is a module with a function `figures(bench)`. Every figure that has a peer is a ratio of two
minima, taken in one run from repeats that alternate; a bar is the most that it should be.
"""
