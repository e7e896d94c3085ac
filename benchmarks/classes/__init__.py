"""Long-tailed classes: balanced error and worst-class recall beside the usual remedies.

Run it from the root of the project: ``python -m benchmarks.classes --quick``.
"""
