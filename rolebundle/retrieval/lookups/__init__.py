"""What a reference names, and what the corpus has: without a task."""
