"""Precisions to train in: what they are, what a machine has for them, what may gain."""
