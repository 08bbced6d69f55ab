"""The files of replicas: their content, and the folder in which they are staged."""
