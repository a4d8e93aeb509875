"""Faults that users of such tools have met, each walked through the real archive with inputs of our own."""
