"""What was, judged anew: any period, one log or all, by any terms; nothing is written."""
