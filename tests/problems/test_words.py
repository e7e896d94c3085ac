"""Other words for the same goal: what people write is read, and refused sentences get a cure."""

import time

import pytest

from setpoint.fairness import demographic_parity, equalized_odds, gap
from setpoint.problems import (
    Problem,
    as_problem,
    parse_capacity,
    pr_auc,
    precision_at_k,
    read_goal,
    roc_auc,
)
from setpoint.problems.validation import more_is_better
from setpoint.problems.vocabulary import PHRASES
from setpoint.rates import (
    CATALOGUE,
    FN,
    FP,
    TN,
    TP,
    Rate,
    balanced_error,
    cost,
    coverage,
    error,
    f_score,
    fnr,
    fpr,
    precision,
    recall,
    tpr,
)

ALL = TP + FP + FN + TN
FPR_1 = Problem(maximize=recall, subject_to=fpr <= 0.01)
PARITY = demographic_parity(0.02, sex=["f", "m"])


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("Maximise Sensitivity s.t. False Positive Rate at most 1 %", FPR_1),
        ("maximize recall st FPR ≤ 1%", FPR_1),
        ("max recall such that false alarm rate no more than .01", FPR_1),
        ("maximize recall with fpr <= 0.01", FPR_1),
        ("maximize recall at fpr <= 0.01", FPR_1),
        ("MAXIMIZE RECALL WHILE KEEPING SPECIFICITY AT LEAST 99 %", None),
        ("minimize fnr subject to fpr = 0.1", Problem(minimize=fnr, subject_to=fpr.at(0.1))),
        ("minimize fnr subject to fpr == 10 %", Problem(minimize=fnr, subject_to=fpr.at(0.1))),
        ("minimize fnr subject to fpr.at(0.1)", Problem(minimize=fnr, subject_to=fpr.at(0.1))),
        ("maximize f1", Problem(maximize=f_score(1))),
        ("maximize F2 score", Problem(maximize=f_score(2))),
        ("minimize miss rate", Problem(minimize=fnr)),
        ("minimize fdr", Problem(minimize=1 - precision)),
        ("maximize balanced accuracy", Problem(maximize=1 - balanced_error)),
        ("fnr_at_fpr(1 %)", Problem(minimize=fnr, subject_to=fpr <= 0.01)),
        ("minimize fnr_at_fpr(0.01)", Problem(minimize=fnr, subject_to=fpr <= 0.01)),
        ("precision_at_k(3, of=7)", precision_at_k(3, of=7)),
        ("precision_at_k(10) per query", precision_at_k(10).per("query")),
        ("maximize auc", roc_auc()),
        ("maximize ROC AUC", roc_auc()),
        ("roc_auc(fpr=[0, 5 %], points=3)", roc_auc(fpr=(0, 0.05), points=3)),
        ("pr_auc(recall=(0.95, 1))", pr_auc(recall=(0.95, 1))),
        ("average precision", pr_auc()),
        (
            "minimize error subject to demographic_parity(0.02, sex=[f, m])",
            Problem(minimize=error, subject_to=PARITY),
        ),
        (
            "minimize error s.t. demographic_parity(2 %, sex=['f', \"m\"]) "
            "with thresholds per group",
            Problem(minimize=error, subject_to=PARITY, thresholds="per group"),
        ),
        (
            "minimize error with gap(tpr, sex=[f, m]) <= 0.02 and fpr <= 0.1",
            Problem(minimize=error, subject_to=[gap(tpr, sex=["f", "m"]) <= 0.02, fpr <= 0.1]),
        ),
        (
            "minimize error subject to equalized_odds(0.1, age=[1, 2]), coverage <= 0.5",
            Problem(minimize=error, subject_to=[*equalized_odds(0.1, age=[1, 2]), coverage <= 0.5]),
        ),
        ("minimize fpr on sex=f", Problem(minimize=fpr.on(sex="f"))),
        ("minimize fpr on sex='f'", Problem(minimize=fpr.on(sex="f"))),
        ("minimize fpr.on(sex='f', age=3)", Problem(minimize=fpr.on(sex="f", age=3))),
        ("minimize fpr on st=1 & f1=auc", Problem(minimize=fpr.on(st=1, f1="auc"))),
        ("minimize cost(miss=500, false_alarm=5)", Problem(minimize=Rate(500 * FN + 5 * FP, ALL))),
        (
            "minimize cost(miss=500, false_alarm=5) subject to recall >= 0.8",
            Problem(minimize=cost(miss=500, false_alarm=5), subject_to=recall >= 0.8),
        ),
    ],
)
def test_other_words_for_the_same_goal(sentence, problem):
    found = Problem.parse(sentence)
    assert problem is None or found == problem
    assert Problem.parse(str(found)) == found


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_can_be_read(phrase):
    starts = {
        "maximize": "{} recall",
        "minimize": "{} fnr",
        "subject to": "minimize fnr {} fpr <= 0.1",
        "<=": "minimize fnr subject to fpr {} 0.1",
        ">=": "minimize fpr subject to recall {} 0.1",
        "=": "minimize fpr subject to recall {} 0.1",
        "f_score": "maximize {}(3)",
    }
    sentence = starts.get(PHRASES[phrase], "maximize {}")
    said, meant = (Problem.parse(sentence.format(words)) for words in (phrase, PHRASES[phrase]))
    assert said == meant == Problem.parse(sentence.format(phrase.upper()))


@pytest.mark.parametrize(
    ("sentence", "nearest"),
    [
        ("minimize fnr subject to fpr < 0.1", "minimize fnr subject to fpr <= 0.1"),
        ("maximize prescision subject to recall >= 1", "maximize precision subject to recall >= 1"),
        ("maximize recall fpr <= 0.1", "maximize recall subject to fpr <= 0.1"),
        ("minimize fnr subjct to fpr <= 0.1", "minimize fnr subject to fpr <= 0.1"),
        ("minimize fnr subject to fpr<0.1", "minimize fnr subject to fpr <= 0.1"),
        ("minimize fn subject to fprr < 0.1", "minimize fnr subject to fpr <= 0.1"),
    ],
)
def test_an_error_names_the_nearest_sentence(sentence, nearest):
    with pytest.raises(ValueError, match=r"This can be read: .*\n") as caught:
        Problem.parse(sentence)
    assert f"This can be read: {nearest}\n" in str(caught.value)
    Problem.parse(nearest)


LONG = {
    "sum": " + ".join(f"0.001 fpr on a={i}" for i in range(3000)),
    "slice": "fpr on " + " & ".join(f'c{i}="a"' for i in range(3000)),
    "same column": "fpr on " + " & ".join(f'c{i % 1500}="a"' for i in range(3000)),
    "bounds": "fnr subject to " + " and ".join(f"fpr on a={i} <= 0.1" for i in range(3000)),
    "fold": f"max({', '.join(f'fpr on a={i}' for i in range(3000))})",
}


@pytest.mark.parametrize("terms", LONG.values(), ids=LONG)
def test_thousands_of_terms_take_no_second(terms):
    began = time.process_time()
    problem = Problem.parse(f"minimize {terms}")
    assert time.process_time() - began < 1
    assert Problem.parse(str(problem)) == problem


@pytest.mark.parametrize(
    ("sentence", "nearest"),
    [
        ("fpr<0.01", "fpr <= 0.01"),
        ("fpr under 1 %", "fpr <= 1 %"),
        ("keep fprr below 1 %", "fpr <= 1 %"),
        ("recall above 95", "recall >= 95 %"),
        ("fpr 1 %", "fpr <= 1 %"),
        ("fpr", "minimize fpr"),
        ("recall", "maximize recall"),
        ("fpr <= 0,01", "fpr <= 0.01"),
        ("fpr <= 1 in 1000", "fpr <= 0.001"),
        ("0.01 < fpr < 0.02", "fpr >= 0.01 and fpr <= 0.02"),
        ("false alarms <= 1 %", "fpr <= 1 %"),
        ("1 % false positives", "at most 1 % fpr"),
        ("tpr@fpr=0.01", "tpr at 0.01 fpr"),
        ("tpr@0.01", "tpr at 0.01 fpr"),
        ("precision@100", "precision at 100 alerts"),
        ("recall_at_k(100)", "recall at 100 alerts"),
        ("recall_at_fpr(0.01)", "recall at 0.01 fpr"),
        ("recall at fpr 1%", "recall at 1% fpr"),
        ("partial_auc(0.1)", "roc_auc(fpr=[0, 0.1])"),
        ("roc_auc(max_fpr=0.1)", "roc_auc(fpr=[0, 0.1])"),
        ("maximize g_mean", "maximize balanced accuracy"),
        ("f0.5", "f_score(0.5)"),
        ("macro f1", "macro(f1)"),
        ("eer", "minimize max(fpr, fnr)"),
        ("cost(fn=500, fp=5)", "cost(miss=500, false_alarm=5)"),
        ("minimize 500 FN + 5 FP", "minimize cost(miss=500, false_alarm=5)"),
        ("minimize cost", "minimize cost(miss=10, false_alarm=1)"),
        ("maximize recall, fpr <= 0.1", "maximize recall subject to fpr <= 0.1"),
        ("maximize recall where fpr <= 0.1", "maximize recall subject to fpr <= 0.1"),
        ("maximize recall subject to: fpr <= 0.1.", "maximize recall subject to fpr <= 0.1"),
        ("fpr <= 0.1 & recall >= 0.5", "fpr <= 0.1 and recall >= 0.5"),
        ("equalised odds(0.02, sex=[f, m])", "equalized_odds(0.02, sex=[f, m])"),
        ("fpr in each group <= 1 %", "largest(fpr, group=[a, b]) <= 1 %"),
        ("fpr <= 1 % for each region", "largest(fpr, region=[a, b]) <= 1 %"),
        ("demographic parity 0.02 by sex", "demographic_parity(0.02, sex=[a, b])"),
        ("equal opportunity gap below 2% for sex", "equal_opportunity(2%, sex=[a, b])"),
        ("equalized_odds(0.1, sex=[f m])", "equalized_odds(0.1, sex=[f, m])"),
        ("partial auc fpr < 5%", "roc_auc(fpr=[0, 5%])"),
        ("roc auc between fpr 0 and 0.05", "roc_auc(fpr=[0, 0.05])"),
        ("worst class recall", "lowest(recall)"),
        ("p@k 50", "precision at 50 alerts"),
        ("f-beta 2", "f_score(2)"),
        ("max recall s.t fpr<=1%", "max recall subject to fpr<=1%"),
        ("minimize fnr subject fpr <= 0.1", "minimize fnr subject to fpr <= 0.1"),
        ("fpr <= 1% with 99% confidence", "fpr <= 1%"),
        ("max fpr 1%", "fpr <= 1%"),
        ("recall minimum 95 %", "recall at least 95 %"),
        ("fpr: 1 %", "fpr <= 1 %"),
        ("fpr <= 5 Prozent", "fpr <= 5 %"),
        ("fpr <= 2‰", "fpr <= 2e-3"),
        ("fpr <= 1 per 1000", "fpr <= 0.001"),
        ("fpr between 1 and 2 percent", "fpr >= 1 % and fpr <= 2 percent"),
        ("false discoveries <= 10 %", "fdr <= 10 %"),
        ("top 100 precision", "precision at 100 alerts"),
        ("recall in the top 2 %", "recall at 2 % coverage"),
        ("recall >= 90% at 5% fpr", "recall >= 90% and fpr <= 5%"),
        ("catch at least 95 % of fraud", "recall >= 95 %"),
        ("flag at most 2 % of cases", "coverage <= 2 %"),
        ("highest recall at 1% false positives", "maximize recall at 1% fpr"),
        ("a miss costs 500 and a false alarm 5", "cost(miss=500, false_alarm=5)"),
        ("cost(miss=500 EUR, false alarm=5 EUR)", "cost(miss=500, false_alarm=5)"),
        ("|tpr on g=a - tpr on g=b| <= 2%", "abs(tpr on g=a - tpr on g=b) <= 2%"),
        ("demographic parity 2 % sex f m", "demographic_parity(2 %, sex=[f, m])"),
        ("catch 95% of fraud with at most 1% false alarms", "recall >= 95% and fpr <= 1%"),
        ("at most 1 in 100 legitimate payments blocked", "fpr <= 0.01"),
        ("no more than 1% of honest customers blocked", "fpr <= 1%"),
        ("review at most 200 cases per day", "alerts <= 200 per day on 95 % of days"),
        ("top-5 accuracy", "top_k(5)"),
        ("top 50", "alerts <= 50"),
        ("0 <= fpr <= 0.01", "fpr <= 0.01"),
        ("fpr in [0.005, 0.01]", "fpr >= 0.005 and fpr <= 0.01"),
        ("fpr@1%", "fpr at 1%"),
        ("fpr95", "fpr at 95 % recall"),
        ("fix fpr to 1%", "fpr at 1%"),
        ("maximize fpr <= 0.01", "fpr <= 0.01"),
        ("for <= 1%", "false omission rate <= 1%"),
        ("selectivity >= 99%", "specificity >= 99%"),
        ("coverage_at_precision(0.99)", "maximize coverage at 0.99 precision"),
        ("maximize auc subject to fpr <= 0.1", "roc_auc(fpr=[0, 0.1])"),
        ("recall >= 0.9 on sex=f", "recall on sex=f >= 0.9"),
        ("recall of cat >= 0.9", 'recall of "cat" >= 0.9'),
        ('precision_at_k(10).per("query")', "precision_at_k(10) per query"),
        ("disparate impact >= 0.8", "ratio(coverage, group=[a, b]) >= 0.8"),
        ("TP/(TP+FP) >= 0.9", "precision >= 0.9"),
        ('"fpr <= 0.01"', "fpr <= 0.01"),
    ],
)
def test_what_people_write_gets_the_nearest_goal(sentence, nearest):
    began = time.process_time()
    with pytest.raises(ValueError, match="This can be read") as caught:
        as_problem(sentence)
    assert time.process_time() - began < 0.5
    assert f"This can be read: {nearest}\n" in str(caught.value)
    assert parse_capacity(nearest) or as_problem(nearest)


CAPACITIES = (
    ("alerts <= 100 per day", "alerts <= 100 per day on 95 % of days"),
    ("100 alerts per week", "alerts <= 100 per week on 95 % of weeks"),
    ("at most 100 alerts a day", "alerts <= 100 per day on 95 % of days"),
    ("alerts <= 100/day", "alerts <= 100 per day on 95 % of days"),
    ("at most 9 alerts a day on 90% of days", "alerts <= 9 per day on 90% of days"),
    ("alerts per day <= 50", "alerts <= 50 per day on 95 % of days"),
    ("max 50 alerts/day", "alerts <= 50 per day on 95 % of days"),
)


@pytest.mark.parametrize(("sentence", "nearest"), CAPACITIES)
def test_alerts_per_day_get_the_nearest_capacity(sentence, nearest):
    with pytest.raises(ValueError, match="This can be read") as caught:
        read_goal(sentence)
    assert f"This can be read: {nearest}\n" in str(caught.value)
    assert parse_capacity(nearest)


@pytest.mark.parametrize(
    "sentence",
    [
        *(text for pair in CAPACITIES for text in pair),
        "maximize recall subject to alerts <= 50 per day",
    ],
)
def test_what_is_no_certificate_says_what_to_do_about_alerts_per_day(sentence):
    with pytest.raises(ValueError, match=r"^Alerts per \w+ go by time.*'coverage <= 2 %'"):
        as_problem(sentence)


def test_a_column_of_queries_may_be_called_day():
    problem = precision_at_k(10).per("day")
    assert str(problem) == 'maximize precision subject to alerts at 10 per "day"'
    assert as_problem(str(problem)) == problem
    with pytest.raises(ValueError, match="go by time"):
        Problem.parse("maximize precision subject to alerts at 10 per day")


@pytest.mark.parametrize("bound", ["fpr <= 1", "recall >= 0", "coverage <= 100 %"])
@pytest.mark.parametrize("of", ["{}", "maximize precision subject to {} and error <= 0.5"])
def test_a_bound_that_excludes_nothing_is_no_goal(bound, of):
    sentence = of.format(bound)
    for goal in (sentence, read_goal(sentence)):
        with pytest.raises(ValueError, match=r"`.*` holds for every threshold\."):
            as_problem(goal)
    assert read_goal(sentence)  # it can be read, and printed


def test_a_bound_alone_is_no_problem():
    with pytest.raises(ValueError, match="'maximize recall subject to fpr <= 1 %'"):
        Problem.parse("fpr <= 1 %")


def test_nothing_between_the_parentheses_of_a_cost_is_dropped():
    with pytest.raises(ValueError, match="not both"):
        as_problem("cost(miss=1.000,50, false_alarm=5)")


SENSELESS = ["hello", "logloss", "fpr <= 0.1 or recall >= 0.5", "fpr ?", "false positives <= 10"]


@pytest.mark.parametrize("sentence", SENSELESS)
def test_nothing_is_offered_that_means_something_else(sentence):
    with pytest.raises(ValueError, match=r"Cannot read '\S+'\. ") as caught:
        as_problem(sentence)
    assert "This can be read" not in str(caught.value)


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("cost(miss=500, false_alarm=5)", "minimize cost(miss=500, false_alarm=5)"),
        (
            "cost(miss=1, false_alarm=5, amounts=a)",
            "minimize cost(miss=1, false_alarm=5, amounts=a)",
        ),
        ("cost([[0, 1], [5, 0]]) subject to fpr of 0 <= 0.1", None),
        ("f1", "maximize f_score(1)"),
        ("balanced_accuracy_score", "maximize 1 - 0.5 fpr - 0.5 fnr"),
        ("error", "minimize error"),
        ("lowest(recall)", None),
        ("AUC-ROC", str(roc_auc())),
        ("ap", str(pr_auc())),
        ("youden", "maximize tpr - fpr"),
        ("recall subject to fpr <= 0.1", "maximize recall subject to fpr <= 0.1"),
        ("recall at fpr <= 0.1", "maximize recall subject to fpr <= 0.1"),
        ("recall at 10 % fpr", "maximize recall subject to fpr <= 0.1"),
        ("sensitivity at 90 % specificity", "maximize recall subject to tnr >= 0.9"),
        ("precision at 100 alerts", "maximize precision subject to alerts at 100"),
        ("recall at fpr = 0.1", "maximize recall subject to fpr at 0.1"),
        ("at most 1 % false positive rate", "maximize recall subject to fpr <= 0.01"),
        ("fnr at 0.1", "minimize fpr subject to fnr at 0.1"),
        ("minimize fnr at fpr <= 0.1", "minimize fnr subject to fpr <= 0.1"),
    ],
)
def test_a_goal_without_a_verb_wants_what_a_good_classifier_has(sentence, problem):
    found = as_problem(sentence)
    assert problem is None or str(found) == problem
    assert found.maximize == str(found).startswith("maximize")
    assert Problem.parse(str(found)) == found


def test_which_way_is_better_is_that_of_a_good_classifier():
    better = {name: more_is_better(rate) for name, rate in CATALOGUE.items()}
    less = {name for name, more in better.items() if more is False}
    assert less == {"fpr", "fnr", "error", "balanced_error"}
    assert {name for name, more in better.items() if more is None} == {
        *("coverage", "alerts", "prevalence"),
    }
    assert more_is_better(gap(tpr, sex=["f", "m"])) is None
    assert more_is_better(cost(miss=1, false_alarm=5, amounts="a")) is False


def test_thresholds_beside_bounds_alone_say_what_to_write():
    with pytest.raises(ValueError, match=r"first\. This can be read: maximize recall s"):
        as_problem("fpr <= 0.1 with thresholds per group")
    with pytest.raises(ValueError, match=r"first\. This can be read: minimize error s"):
        as_problem("demographic_parity(0.1, sex=[f, m]) with thresholds per group")
    as_problem("maximize recall subject to fpr <= 0.1 with thresholds per group")


def test_a_unit_after_a_number_is_read_or_refused_never_dropped():
    assert as_problem("fpr at most 1 percent") == as_problem("fpr <= 0.01")
    assert as_problem("recall >= 95 Per cent") == as_problem("recall >= 0.95")
    with pytest.raises(ValueError, match="Cannot read '‰'") as caught:
        as_problem("fpr <= 1‰")
    assert "fpr <= 1\n" not in str(caught.value)


def test_a_share_of_alerts_is_coverage():
    with pytest.raises(ValueError, match="for a share write 'coverage <= 2 %'"):
        as_problem("alerts <= 2 %")
    assert str(as_problem("alerts <= 20")) == "maximize recall subject to alerts <= 20"


@pytest.mark.parametrize(
    "sentence",
    ["recall on age<30 >= 0.9", "maximize 10 TP - FP", "npv_at_coverage", "ndcg@10"],
)
def test_no_sentence_is_offered_that_means_something_else(sentence):
    with pytest.raises(ValueError, match="Cannot read") as caught:
        as_problem(sentence)
    assert "This can be read" not in str(caught.value)
