"""What a run over ways to convolve means."""
