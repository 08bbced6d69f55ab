"""What was decided, and whether an intent is about it."""
