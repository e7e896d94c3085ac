"""Adult and Communities & Crime as the ICO paper counts their columns: 122 and 145.

Both follow the notebooks of TFCO, which authors of the paper wrote: Adult with every number in four
bins (`Fairness_adult.ipynb`), Crime with an indicator for every column that has missing values
(`PRAUC_training.ipynb`).
"""

import numpy as np
import pandas as pd

from benchmarks.common.folder import path
from setpoint.datasets import Table

EDGES = {
    "capital_gain": [-1, 1, 4000, 10_000, 100_000],
    "capital_loss": [-1, 1, 1800, 1950, 4500],
    "hours_per_week": [0, 39, 41, 50, 100],
    "education_num": [0, 8, 9, 11, 16],
}
IDENTITIES = ["state", "county", "community", "communityname", "fold"]
CRIMES = "ViolentCrimesPerPop"


def adult() -> Table:
    """48,842 people; numbers in bins, all one-hot."""
    rows = pd.read_csv(path("adult/adult.csv.gz"), keep_default_na=False)
    features = rows.drop(columns=["fnlwgt", "income", "split"])
    features["age"] = pd.qcut(features["age"], 4, labels=False)
    for name, edges in EDGES.items():
        features[name] = pd.cut(features[name], edges, labels=False)
    x = pd.get_dummies(features, columns=list(features), dtype=float)
    return _table(x, rows["income"] == ">50K")


def crime() -> Table:
    """1,994 communities; positive are those with the most violent crimes, three in ten."""
    rows = pd.read_csv(path("communities_crime/communities_crime.csv.gz"))
    labels = rows[CRIMES] >= rows[CRIMES].quantile(0.7)
    features = rows.drop(columns=[*IDENTITIES, CRIMES])
    gaps = features.isna()
    missing = gaps.loc[:, gaps.any()].add_suffix("_is_missing").astype(float)
    return _table(pd.concat([features.fillna(0.0), missing], axis=1), labels)


def _table(features: pd.DataFrame, labels: pd.Series) -> Table:
    return Table(features.to_numpy(np.float32), labels.to_numpy(np.int64))
