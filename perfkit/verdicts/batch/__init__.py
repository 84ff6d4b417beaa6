"""What a run over batch sizes means."""
