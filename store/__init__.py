"""What is kept. Knows nothing about how it was found."""
