"""Several classes: an equal chance for each, and one of them held to what can be handled.

Run it: python examples/several_classes.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from setpoint.estimators import Classifier

GOAL = 'maximize macro(recall) subject to coverage of "eight" at 0.05'
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def main() -> None:
    x, y = load_digits(return_X_y=True)
    names = [NAMES[digit] for digit in y]
    x_fit, x_new, y_fit, y_new = train_test_split(x, names, stratify=names, random_state=0)
    model = Classifier(GOAL, epochs=20, random_state=0).fit(x_fit, y_fit)
    print(model.confusions_)
    print()
    said = model.predict(x_new)
    print("on rows that nobody has seen:")
    print(f"  called eight {(said == 'eight').mean():.1%} (5 % was asked for)")
    print(f"  right        {(said == y_new).mean():.1%}")


if __name__ == "__main__":
    main()
