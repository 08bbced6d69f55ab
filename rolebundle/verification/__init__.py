"""Drafts against evidence, decisions and checks, remembered facts, and the completion gate."""
