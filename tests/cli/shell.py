"""Commands as a shell runs them, and files for them to read."""

import csv

import numpy as np

from setpoint import cli


def run(*arguments):
    """The exit code, also where argparse leaves by itself."""
    try:
        return cli.main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        return int(leaving.code or 0)


def write_scores(path, rows=1000, gap=2.5, seed=0):
    """Scores whose classes lie ``gap`` apart, in columns s, y and g."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < 0.3).astype(int)
    s = rng.normal(size=rows) + gap * y
    lines = [f"{a!r},{b},{'ab'[i % 2]}" for i, (a, b) in enumerate(zip(s.tolist(), y, strict=True))]
    path.write_text("\n".join(["s,y,g", *lines]) + "\n")
    return path


def write_data(path, rows=1200, seed=0, **extra):
    """A table to learn from: numbers, categories, gaps, a constant, an identifier."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_id", "age", "city", "sex", "fixed", "churn", *extra])
        for i in range(rows):
            y = rng.random() < 0.3
            age = "" if rng.random() < 0.05 else round(float(rng.normal(40 + 25 * y, 10)), 2)
            city = ["Rome", "Oslo", '"<script>", x'][rng.integers(3)]
            row = [f"c{i}", age, city, "fm"[i % 2], 7, "yes" if y else "no"]
            writer.writerow([*row, *extra.values()])
    return path
