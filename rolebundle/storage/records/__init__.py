"""What a corpus knows besides its documents, one table a file: roots, marks, decisions."""
