"""Files, their documents and chunks: how they are written and read."""
