"""What is said and done, against what is known: drafts, decisions, the gate, marks and facts."""
