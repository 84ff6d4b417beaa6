"""The models and images that experiments train on."""
