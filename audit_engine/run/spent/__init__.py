"""States of logs that no later run goes on from."""
