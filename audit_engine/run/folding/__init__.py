"""What becomes of each log in a run: excused, judged over what is carried of it, or over an earlier state."""
