"""The page of rates and goals (docs/goals.md), made from the tables of the parser.

python -m docs.make_goals > docs/goals.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from setpoint.problems import grammar
from setpoint.problems.goals import as_problem
from setpoint.problems.vocabulary import EXPRESSIONS, PHRASES, TARGETS
from setpoint.rates import CATALOGUE, Rate

EXAMPLES = {
    "A bound, and another": "fpr <= 1 % and coverage <= 0.2",
    "An objective": "minimize balanced_error",
    "An objective under a bound": "maximize recall subject to fpr <= 0.01",
    "At most, at least": "maximize precision s.t. recall at least 95 %",
    "A rate held at a value": "maximize precision subject to recall at 0.95",
    "A number of alerts": "maximize precision subject to alerts at 100",
    "An area": "maximize tpr over fpr in [0, 0.05] with 10 thresholds",
    "Weights": "minimize 0.9 fnr + 0.1 fpr",
    "Money": "minimize cost(miss=500, false_alarm=5) subject to recall >= 0.8",
    "Money that differs by row": "minimize cost(miss=1, false_alarm=5, amounts=amount)",
    "A rate of your own": "minimize (5 FN + FP) / (TP + FP + FN + TN)",
    "A ratio": "maximize precision / prevalence",
    "The worse of two": "minimize max(fpr, fnr)",
    "A group": 'maximize recall subject to fpr on region="north" <= 0.01',
    "Two columns": 'minimize fnr on sex="f" & age=3',
    "A gap": "minimize error subject to gap(tpr, sex=[f, m]) <= 0.05",
    "Fairness by name": "minimize error subject to demographic_parity(0.1, sex=[f, m])",
    "A threshold per group": (
        "minimize error subject to equal_opportunity(0.1, sex=[f, m]) with thresholds per group"
    ),
    "A class": 'maximize recall of "cat" subject to precision of "cat" >= 0.9',
    "Over all classes": "maximize lowest(recall) subject to accuracy >= 0.8",
    "Queries": "maximize precision subject to alerts at 10 per query",
    "A goal by name": "fnr_at_fpr(1 %)",
    "Without a verb": "cost(miss=500, false_alarm=5)",
    "A rate at the level of another": "recall at 1 % fpr",
}
"""Every form of a sentence, by what it shows."""
MEANING = {
    "fpr": "negatives that are accepted: false alarms",
    "tnr": "negatives that are rejected: specificity",
    "fnr": "positives that are rejected: misses",
    "recall": "positives that are accepted",
    "tpr": "the same as recall",
    "precision": "accepted rows that are positive",
    "npv": "rejected rows that are negative",
    "coverage": "rows that are accepted: the share of alerts",
    "alerts": "the number of accepted rows",
    "prevalence": "rows that are positive",
    "error": "rows that are decided wrongly",
    "accuracy": "rows that are decided rightly",
    "jaccard": "true alerts among alerts and misses",
    "lift": "how many times more positives among alerts",
    "balanced_error": "the mean error of both classes",
    "mcc": "correlation of decisions and labels",
    "kappa": "agreement of decisions and labels beyond chance",
}
"""What a rate is a share of, in words."""
NAMED = (
    "fnr_at_fpr(0.01)",
    "tpr_at_fpr(0.01)",
    "precision_at_recall(0.95)",
    "recall_at_precision(0.9)",
    "precision_at_k(100)",
    "roc_auc(fpr=[0, 0.05])",
    "pr_auc(recall=[0.95, 1])",
    "demographic_parity(0.02, sex=[f, m])",
    "equal_opportunity(0.02, sex=[f, m])",
    "equalized_odds(0.02, sex=[f, m])",
    "predictive_parity(0.02, sex=[f, m])",
    "bounded_group_loss(0.2, fnr, sex=[f, m])",
    "four_fifths(sex=[f, m])",
    "gap(tpr, sex=[f, m])",
    "ratio(tpr, sex=[f, m])",
    "largest(fnr, sex=[f, m])",
    "smallest(tpr, sex=[f, m])",
)
"""Every goal, bound and rate of groups that has a name, with arguments."""
CAPACITY = "alerts <= 200 per day on 95 % of days"


def page() -> str:
    """The page in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Rates, goals, sentences"
    yield ""
    yield "Whatever takes a goal takes a `Problem`, a bound or a sentence; every problem prints as"
    yield "a sentence that reads back. Case does not matter. An error points at the word and names"
    yield "the nearest sentence that can be read. Without a verb, an objective goes the way of a"
    yield "good classifier. This page is made by `python -m docs.make_goals`."
    yield from _table(
        "Forms",
        ("what", "sentence", "read as"),
        ((what, f"`{s}`", _other(s)) for what, s in EXAMPLES.items()),
    )
    yield ""
    yield "Certificates also take a capacity, from rows with times:"
    yield f"`{CAPACITY}`."
    yield from _table(
        "Rates",
        ("name", "formula", "in words"),
        ((f"`{n}`", _definition(n), MEANING[n]) for n in CATALOGUE),
    )
    yield ""
    yield "`f_score(beta)` is ((1 + beta²) TP) / ((1 + beta²) TP + beta² FN + FP)."
    yield from _table("Goals and bounds by name", ("name", "stands for"), _named())
    yield from _table("Other words", ("word", "you may write"), _phrases())
    yield from ("", "## Grammar", "", "```text")
    rules = (grammar.__doc__ or "").partition("::")[2].strip("\n").splitlines()
    yield from (line[4:].rstrip() for line in rules)
    yield "```"


def _other(sentence: str) -> str:
    """How the sentence prints, if that differs."""
    printed = str(as_problem(sentence))
    return "the same" if printed == sentence else f"`{printed}`"


def _table(title: str, head: tuple[str, ...], rows: object) -> Iterator[str]:
    yield from ("", f"## {title}", "", f"| {' | '.join(head)} |", "| --- " * len(head) + "|")
    assert isinstance(rows, Iterator | tuple)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _definition(name: str) -> str:
    """A rate in counts; others as the expression they are."""
    known = CATALOGUE[name]
    if isinstance(known, Rate):
        return f"({known.numerator}) / ({known.denominator})"
    return {
        "lift": "precision / prevalence",
        "balanced_error": "0.5 fpr + 0.5 fnr",
        "mcc": "Matthews' correlation coefficient",
        "kappa": "Cohen's kappa: (accuracy - chance) / (1 - chance)",
    }[name]


def _named() -> Iterator[tuple[str, str]]:
    """Names with the problem, the bounds or the rate they stand for."""
    for call in NAMED:
        name = call.partition("(")[0]
        if name in TARGETS:
            meaning = str(as_problem(f"minimize error subject to {call}")).partition("to ")[2]
        elif name in EXPRESSIONS:
            meaning = str(as_problem(f"minimize {call}")).removeprefix("minimize ")
        else:
            meaning = str(as_problem(call))
        yield f"`{call}`", f"`{meaning}`"


def _phrases() -> Iterator[tuple[str, str]]:
    """Each word of the grammar with the phrases that stand for it."""
    ordered = sorted(PHRASES.items(), key=lambda pair: list(PHRASES.values()).index(pair[1]))
    for word, pairs in groupby(ordered, key=lambda pair: pair[1]):
        yield f"`{word}`", ", ".join(phrase for phrase, _ in pairs)


if __name__ == "__main__":
    print(page(), end="")
