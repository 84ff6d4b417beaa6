"""What several questions train on, time with, or say."""
