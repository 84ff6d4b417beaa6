"""What is this machine, and what in it slows training? Said for people to read."""
