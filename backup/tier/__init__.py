"""Target tier: recorded versions back onto their keys, a new generation on record, the log's start back."""
