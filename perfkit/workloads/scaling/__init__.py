"""One training on one device, and the same on several: its steps, data and links."""
