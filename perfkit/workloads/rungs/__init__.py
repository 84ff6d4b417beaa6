"""The pieces of work that a machine is tried with, one kind a file."""
