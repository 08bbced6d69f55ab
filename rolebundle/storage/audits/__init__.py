"""The audit's file beside the corpus."""
