"""What a run over precisions means."""
