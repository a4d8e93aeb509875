"""What is wrong with a home, and the repairs that are safe."""
