"""How figures are printed."""

import os
import statistics
import time
from pathlib import Path


def percentile(seconds: list[float], share: float) -> float:
    """The value below which this share of the sorted values lies."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def line(name: str, count: int, elapsed: float, latencies: list[float]) -> str:
    """`name: per second, p50, p99`, in milliseconds."""
    p50, p99 = percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3
    return (
        f"{name:<58} {count / elapsed:7.0f}/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   ({count:,} in {elapsed:.1f} s)"
    )


def fdatasync(folder: Path, rounds: int = 300) -> str:
    """What one small committed write costs on this disk: the part of every commit that no code makes faster."""
    path, seconds = folder / "fdatasync.probe", []
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(rounds):
            os.pwrite(descriptor, b"x" * 8192, 0)
            begun = time.perf_counter()
            os.fdatasync(descriptor)
            seconds.append(time.perf_counter() - begun)
    finally:
        os.close(descriptor)
        path.unlink()
    mean = statistics.fmean(seconds) * 1e3
    return (
        f"fdatasync of 8 KiB, {rounds} times: mean {mean:.2f} ms, p50 {percentile(seconds, 0.5) * 1e3:.2f} ms, "
        f"p99 {percentile(seconds, 0.99) * 1e3:.2f} ms"
    )
