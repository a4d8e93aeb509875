"""The application: it alone knows agents, files, models, terminals and protocols."""
