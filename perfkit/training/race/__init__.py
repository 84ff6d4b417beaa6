"""Is this training faster than that one: scripts, commits, environments."""
