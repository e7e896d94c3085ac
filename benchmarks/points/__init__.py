"""Every goal, model class and method on the same splits: the parts of operating_points.py."""
