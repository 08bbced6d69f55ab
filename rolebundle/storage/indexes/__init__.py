"""The lexical and the embedding indexes, one part for each compartment of documents."""
