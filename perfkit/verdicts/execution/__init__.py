"""What a run over modes of execution means."""
