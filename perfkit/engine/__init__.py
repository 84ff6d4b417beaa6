"""How fast, and are we sure? Trials in fresh processes, rounds, statistics."""
