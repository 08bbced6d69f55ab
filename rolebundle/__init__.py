"""Governed retrieval for on-device agents."""
