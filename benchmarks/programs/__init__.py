"""Metrics as linear programs: how fast, how exact, and whether training on them helps.

Run from the root of the project, for example ``python -m benchmarks.programs.speed --quick``.
docs/programs.md shows what came out, with the command beside each table.
"""
