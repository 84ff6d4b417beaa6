"""What a known load did to a training, and by what signs it is told."""
