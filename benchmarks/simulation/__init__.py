"""The simulation behind docs/certificates_measured.md: known truth, three methods."""
