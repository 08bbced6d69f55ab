"""The files of replicas: what is copied into them, and where they wait."""
