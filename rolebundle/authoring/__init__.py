"""Writing a corpus's own settings: what a folder has, drafts of a manifest and of overlays."""
