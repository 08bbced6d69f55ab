"""The servers: `serve` and `mcp`, the methods that they share, and how hosts reach them."""
