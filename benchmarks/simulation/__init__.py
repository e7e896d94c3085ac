"""The simulation behind docs/certificates.md: known truth, goals near the edge, three methods."""
