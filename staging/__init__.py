"""The review queue: what waits, who decides, what is promoted."""
