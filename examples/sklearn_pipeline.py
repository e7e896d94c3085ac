"""scikit-learn: mixed columns, a pipeline, a search, and a certificate at the end.

pip install "setpoint[sklearn]" pandas && python examples/sklearn_pipeline.py
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from setpoint import CertifiedThreshold, Classifier

GOAL = "maximize recall subject to fpr <= 0.05"


def customers(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Amounts with gaps, a kind of account, and who turned out to be a fraud."""
    random = np.random.default_rng(seed)
    kind = random.choice(["private", "shop", "agency"], rows)
    amount, age = random.lognormal(3, 1, rows), random.uniform(0, 10, rows)
    risk = np.log(amount) - 0.5 * age + 1.5 * (kind == "agency") + random.logistic(size=rows)
    table = pd.DataFrame({"amount": amount, "age": age, "kind": kind})
    table.loc[random.random(rows) < 0.1, "age"] = np.nan
    return table, (risk > 4).astype(int)


def main() -> None:
    x, y = customers(6000, seed=0)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["amount", "age"]), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    trained = make_pipeline(columns, Classifier(GOAL, epochs=5, random_state=0))
    trained.fit(x, y)  # trained for the goal; certified on rows split off inside
    search = GridSearchCV(
        make_pipeline(columns, LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        scoring="roc_auc",
        cv=3,
    )
    wrapped = CertifiedThreshold(search, goal=GOAL, random_state=0).fit(x, y)
    fresh, truth = customers(20_000, seed=1)
    for name, model, promise in (
        ("Classifier in a pipeline", trained, trained[-1].certificate_),
        ("CertifiedThreshold around a search", wrapped, wrapped.certificate_),
    ):
        accept = model.predict(fresh) == 1
        alarms, found = accept[truth == 0].mean(), accept[truth == 1].mean()
        print(f"{name}: {promise.status}; on new data fpr {alarms:.2%}, recall {found:.1%}")


if __name__ == "__main__":
    main()
