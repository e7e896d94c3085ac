"""What several benchmarks share: data, splits, networks.

Run a benchmark from the root of the project: ``python -m benchmarks.operating_points --quick``.
"""
