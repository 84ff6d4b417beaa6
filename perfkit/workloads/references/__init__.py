"""The reference trainings: the same jobs on every machine, taken apart by swaps."""
