"""Text to vectors: one protocol, several engines."""
