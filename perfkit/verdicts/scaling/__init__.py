"""What several devices bring to one training."""
