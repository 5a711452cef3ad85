"""How long fetches took, by where they were answered from: counts by bucket, as Prometheus has histograms."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TIERS = ("store", "leader", "both")


class Timing:
    """For one event loop; read by another thread, for which a count may be a moment old."""

    def __init__(self) -> None:
        self.counts = {tier: [0] * (len(BOUNDS_S) + 1) for tier in TIERS}
        self.sums_s = dict.fromkeys(TIERS, 0.0)

    def took(self, tier: str, seconds: float) -> None:
        self.counts[tier][bisect_left(BOUNDS_S, seconds)] += 1
        self.sums_s[tier] += seconds
