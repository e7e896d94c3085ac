"""The cases: what training rows decide, and what must not be in two parts."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lightgbm")
from benchmarks.cases import data
from setpoint.datasets import Table


def test_columns_are_clipped_by_training_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(2000, 2)).astype(np.float32)
    train = np.random.default_rng(5).permutation(2000)[:1000]
    far = np.full_like(x, 1e6)
    far[train] = x[train]
    monkeypatch.setattr(data.tables, "read", lambda _: Table(far, np.zeros(2000, np.int64)))
    parts = data.CASES["scorecard"].read(5)
    highest = np.quantile(x[train], 0.995, axis=0)
    for part in parts:
        assert part.x.max(0) == pytest.approx(highest)
    assert parts[0].x.min(0) == pytest.approx(np.quantile(x[train], 0.005, axis=0))


def test_copies_of_a_text_are_never_in_two_parts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    names = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    texts = [form.format(name) for name in names for form in ("say {} 1", "Say: {}!", "{} заяц")]
    kinds = [kind for name in names for kind in (f"say {name}", f"say {name}", name)]
    table = pd.DataFrame({"text": texts, "y": 1, "category": kinds})
    table.to_csv(tmp_path / "texts.csv.xz")
    monkeypatch.setattr(data, "path", lambda _: tmp_path / "texts.csv.xz")
    parts = data.CASES["guardrail"].read(0)
    found = np.concatenate([part.kind for part in parts])
    assert sorted(found) == sorted(set(kinds))
