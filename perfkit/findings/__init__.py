"""What did we learn? Findings as records and as files."""
