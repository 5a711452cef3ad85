"""Makes topics: the three in which Seawall keeps its own state."""
