"""Ways to execute the same training: loops, ``fit``, who watches it, what retraces."""
