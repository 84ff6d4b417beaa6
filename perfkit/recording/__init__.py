"""Making the passport of this machine."""
