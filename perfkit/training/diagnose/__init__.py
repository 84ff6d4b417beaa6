"""What slows a training of one's own, measured by swapping one thing at a time."""
