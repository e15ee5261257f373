"""Benchmarks with their generators. `make bench` prints each figure beside a floor measured in the same run.

Nothing here is a test: a figure says what this machine did, now. They talk to loopback only and stop by themselves.
"""
