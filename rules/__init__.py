"""What is worth keeping, and what must not be kept: rules as data, and the engine that reads a session by them."""
