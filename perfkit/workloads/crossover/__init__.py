"""The same training on two devices: what it costs, where it runs, how it is fed."""
