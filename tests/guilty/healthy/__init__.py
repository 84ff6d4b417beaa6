"""Trainings as a careful user writes them: nothing is wrong with any of them."""
