"""What is this computer? Its record and the readings of its GPUs."""
