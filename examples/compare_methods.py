"""The same problem by several methods on UCI Letter: which one to take?

python examples/compare_methods.py
"""

from setpoint import compare, fnr_at_fpr
from setpoint.datasets import letter


def main() -> None:
    found = compare(
        fnr_at_fpr(0.01),
        letter(),
        ["cross_entropy", "focal", "resampled", "implicit"],
        seeds=3,
        steps=400,
    )
    print(found)


if __name__ == "__main__":
    main()
