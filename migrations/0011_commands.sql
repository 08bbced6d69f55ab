-- Decisions about shell commands.

-- JSON array: glob patterns over a command.
ALTER TABLE decision ADD COLUMN commands TEXT NOT NULL DEFAULT '[]';
