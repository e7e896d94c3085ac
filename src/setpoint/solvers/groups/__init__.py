"""One threshold per group, coupled by what has to hold between the groups."""
