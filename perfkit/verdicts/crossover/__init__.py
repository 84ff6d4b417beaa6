"""From which size on a second device pays."""
