"""Error against the gap between groups on test data, beside the libraries people use for it."""
