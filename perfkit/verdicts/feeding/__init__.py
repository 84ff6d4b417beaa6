"""What a run over ways of feeding images means."""
