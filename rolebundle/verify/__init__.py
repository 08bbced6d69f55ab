"""Drafts, against the passages that they cite."""
