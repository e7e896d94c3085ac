"""Implicit shifts of several classes (section 6.2 of the paper)."""
