"""What uploads and removals left behind: found, accounted for, and removed only where it is provably dead."""
