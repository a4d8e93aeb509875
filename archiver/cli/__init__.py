"""The commands. Each reads arguments, calls one flow, prints, and sets an exit code."""
