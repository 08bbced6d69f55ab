"""The audit's file beside the corpus, and the collected ones of replicas."""
