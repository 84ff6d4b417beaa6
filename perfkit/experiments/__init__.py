"""The questions, one file each; ``base`` is the contract."""
