"""Invented sessions, and the story they tell."""
