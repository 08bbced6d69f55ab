"""A draft against the passages of its evidence: its quotes, citations, figures and sentences."""
