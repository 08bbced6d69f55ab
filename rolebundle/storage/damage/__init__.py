"""What is found to be damaged in a corpus, and what is saved of it."""
