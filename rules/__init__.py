"""The vocabulary that everything here shares: what happened, to which log; it imports nothing of ours."""
