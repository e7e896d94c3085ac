"""What several processes cost: measured on this machine, and a model of many."""
