"""What the reference trainings show: where the time of each step goes."""
