"""A threshold that keeps its promise, for a classifier that is already there.

Run it: python examples/certified_threshold.py
"""

from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from setpoint.datasets import letter
from setpoint.estimators import CertifiedThreshold

GOAL = "maximize recall subject to fpr <= 0.01"


def main() -> None:
    x, y = letter()  # is it a U? 813 of 20,000 are
    x_fit, x_new, y_fit, y_new = train_test_split(x, y, stratify=y, random_state=0)
    forest = RandomForestClassifier(n_estimators=50, max_depth=6, random_state=0)
    model = CertifiedThreshold(forest, goal=GOAL, confidence=0.95, random_state=0)
    model.fit(x_fit, y_fit)
    print(model.certificate_)

    accepted = model.predict(x_new) == 1
    print()
    print("on rows that nobody has seen:")
    print(f"  fpr    {accepted[y_new == 0].mean():.2%} (at most 1 % was promised)")
    print(f"  recall {accepted[y_new == 1].mean():.1%}")
    print(
        f"  recall {(forest.fit(x_fit, y_fit).predict(x_new)[y_new == 1] == 1).mean():.1%} "
        "with the forest's own threshold of 0.5"
    )


if __name__ == "__main__":
    main()
