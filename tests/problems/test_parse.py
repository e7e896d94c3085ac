"""Sentences and problems are two spellings of one thing, and errors point at the word."""

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples, expressions, problems

import setpoint as sp
from setpoint.problems.words import SHOWN
from setpoint.rates import CATALOGUE, ONE, lift


def reads_back(problem):
    again = sp.Problem.parse(str(problem))
    assert again == problem
    assert hash(again) == hash(problem)


@examples(3000)
@given(problems())
def test_every_problem_reads_back_as_itself(problem):
    reads_back(problem)


@examples(500)
@given(problems(size=7))
def test_large_problems_read_back_as_well(problem):
    reads_back(problem)


@examples(500)
@given(problems(), st.randoms(use_true_random=True))
def test_white_space_does_not_matter(problem, random):
    quoted = re.split(r'("(?:[^"\\]|\\.)*")', str(problem))
    spaces = [" ", "  ", "\n", "\t ", "\u00a0"]
    for i in range(0, len(quoted), 2):  # outside of strings
        quoted[i] = re.sub(" ", lambda _: random.choice(spaces), quoted[i])
    assert sp.Problem.parse(" " + "".join(quoted) + "\n") == problem


@examples(300)
@given(expressions(tame=True), st.integers(1, 12))
def test_expressions_read_back_wherever_they_stand(e, count):
    if any(True for _ in e.rates()):
        reads_back(sp.Problem(minimize=e))
        reads_back(sp.Problem(maximize=sp.fpr, subject_to=[e <= 0.5, sp.fnr >= 0.25]))
    if e.direction:
        reads_back(sp.Problem(minimize=sp.fnr, subject_to=e.over(0.25, 0.75), thresholds=count))


BY_HAND = [
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.01),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.95),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.02),
    sp.pr_auc(recall=(0.95, 1.0), points=5),
    sp.roc_auc(fpr=(0.0, 0.05), points=1),
    sp.precision_at_k(100),
    sp.precision_at_k(3, of=7),
    sp.Problem(
        minimize=sp.error,
        subject_to=abs(sp.coverage.on(group="a") - sp.coverage.on(group="b")) <= 0.02,
        thresholds="per group",
    ),
    sp.Problem(maximize=sp.f_score(1.0)),
    sp.Problem(maximize=lift, subject_to=[sp.fpr.on(site=1) <= 0.1, sp.fpr.on(site=2) <= 0.1]),
    sp.Problem(minimize=sp.balanced_error),
    sp.Problem(minimize=2 * sp.balanced_error + 1),
    sp.Problem(minimize=sp.Rate(5 * sp.FN + sp.FP, ONE), subject_to=1 - sp.precision <= 0.5),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr - sp.fnr >= -0.02),
    sp.Problem(maximize=sp.minimum(sp.recall, 1 / sp.maximum(sp.fpr, 1e-300))),
    sp.Problem(minimize=1e-300 * sp.fpr - 1e300 * sp.fnr + 5e-324),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(5e-324)),
    sp.Problem(minimize=sp.Rate(-1 * sp.TP, -1 * sp.TP - 3 * sp.TN - 1e-9 * ONE)),
    sp.Problem(minimize=sp.fpr / sp.fnr / sp.tpr),
    sp.Problem(minimize=sp.fpr / (sp.fnr / sp.tpr)),
    sp.Problem(minimize=(sp.fpr / sp.fnr) * 2),
    sp.Problem(minimize=sp.maximum(0.5) / sp.fpr + sp.maximum(sp.fpr, 0.5, sp.fnr)),
    sp.Problem(minimize=sp.Rate(sp.TP, ONE) / sp.Rate(sp.FP, ONE)),
    sp.Problem(minimize=2 * sp.Rate(sp.TP, ONE) - sp.Rate(sp.FP, sp.TP + sp.TN)),
    sp.Problem(minimize=sp.fnr.on(**{'a "b" \\': 'c\n"d"', "and": "with 2 thresholds"})),
    sp.Problem(minimize=sp.fnr.on(a=-1, b=-0.5, c=True, d=10**40, e=1e22)),
    sp.Problem(minimize=sp.fnr.on(TP="TP", fpr="on", self="self")),
    sp.Problem(
        minimize=sp.fnr,
        subject_to=[sp.fpr.on(a=1).at(0.1), sp.fpr.on(a=2).at(0.2)],
        thresholds="per group",
    ),
]


@pytest.mark.parametrize("problem", BY_HAND, ids=str)
def test_problems_made_by_hand_read_back(problem):
    reads_back(problem)
    assert str(sp.Problem.parse(str(problem))) == str(problem)
    assert eval(repr(problem), {"Problem": sp.Problem}) == problem


def test_the_deepest_problem_reads_back():
    deep = sp.fpr
    for i in range(16):
        deep = abs(2 * deep / (sp.fnr + i))
    assert deep.depth > 45
    reads_back(sp.Problem(minimize=deep))
    left, right = sp.fpr, sp.fpr
    for _ in range(49):
        left, right = left / sp.fnr, sp.fnr / right
    reads_back(sp.Problem(minimize=left))
    reads_back(sp.Problem(minimize=right))


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (
            "minimize fnr subject to fpr <= 1 %",
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.01),
        ),
        ("minimize fnr subject to fpr<=1%", sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.01)),
        (
            "minimize fnr subject to fpr <= 0.7 %",
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.007),
        ),
        (
            "minimize fnr subject to fpr <= 1e1 \t%",
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1),
        ),
        (
            "minimize fnr subject to fpr <= .01",
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.01),
        ),
        ("minimize 50 % fpr + 0.5*fnr", sp.Problem(minimize=sp.balanced_error)),
        ("minimize (fpr)", sp.Problem(minimize=sp.fpr)),
        ("minimize ((fpr + fnr)) / 2", sp.Problem(minimize=sp.balanced_error)),
        ("minimize max(fpr)", sp.Problem(minimize=sp.fpr)),
        ("minimize 1 + 2 + fpr", sp.Problem(minimize=sp.fpr + 3)),
        ("minimize 2 precision / prevalence", sp.Problem(minimize=2 * lift)),
        ("minimize (TP) / (TP + FN)", sp.Problem(minimize=sp.recall)),
        ("minimize (2 - FP) / (TP)", sp.Problem(minimize=sp.Rate(2 * ONE - sp.FP, sp.TP))),
        ("minimize (TP+TP)/(1+TN)", sp.Problem(minimize=sp.Rate(2 * sp.TP, ONE + sp.TN))),
        ('minimize fpr on "group"="a"', sp.Problem(minimize=sp.fpr.on(group="a"))),
        (r'minimize fpr on group="\u0061"', sp.Problem(minimize=sp.fpr.on(group="a"))),
        ("maximize tpr over fpr in [0, 5 %]", sp.roc_auc(fpr=(0, 0.05))),
        ("maximize tpr over fpr in [0, 1] with 1 threshold", sp.roc_auc(points=1)),
        ("maximize tpr over fpr in [0, 1] with 1 thresholds", sp.roc_auc(points=1)),
        ("minimize fnr with 1 threshold", sp.Problem(minimize=sp.fnr)),
        ("minimize fnr on a=٣", sp.Problem(minimize=sp.fnr.on(a=3))),
    ],
)
def test_sentences_people_write(sentence, problem):
    assert sp.Problem.parse(sentence) == problem


READ_BACK = {
    "queries": [
        "maximize precision subject to alerts at 10 per query",
        "minimize fnr subject to fpr <= 0.01 per user_id",
        'maximize recall over precision in [0.9, 1] with 10 thresholds per "search session"',
        "maximize f_score(1) per per",
        'minimize fpr + 0.5 per "a \\" b"',
    ],
    "classes": [
        'maximize lowest(recall) subject to coverage of "cat" at 0.1 and coverage of "dog" at 0.3',
        "minimize cost([[0, 1], [-0.5, 0]])",
        "maximize top_k(2) of 1 or 2 subject to recall of 0 >= 0.8",
        'maximize f_score(1) of "a b" or "c" on group="x"',
        "maximize 0.5 macro(recall - fpr) + 0.5 lowest(recall)",
        "maximize one_vs_all_auc",
    ],
}


@pytest.mark.parametrize("kind", READ_BACK)
def test_sentences_about_queries_and_classes_read_back(kind):
    for sentence in READ_BACK[kind]:
        problem = sp.Problem.parse(sentence)
        assert str(problem) == sentence
        assert problem.kind == kind
        assert hash(sp.Problem.parse(str(problem))) == hash(problem)
        assert sp.Problem.parse(str(problem)) == problem
        if kind == "queries":
            assert problem != sp.Problem.parse(sentence.rsplit(" per ", 1)[0])


# ---- errors --------------------------------------------------------------------------------------
def error_of(sentence):
    """The message, and the part of the sentence that the carets stand under."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (what it says is for the caller)
        sp.Problem.parse(sentence)
    assert type(caught.value) is ValueError
    message, line, marks = str(caught.value).rsplit("\n", 2)
    shown = re.sub(r"\s", " ", sentence)
    assert line == f"  {shown}" if len(shown) <= SHOWN else line.strip("… ") in shown
    assert len(line) <= SHOWN + 6
    assert set(marks.strip()) == {"^"}
    start = len(marks) - len(marks.lstrip())
    return message, line[start : len(marks)]


@pytest.mark.parametrize(
    ("sentence", "word", "advice"),
    [
        ("", "", "starts with 'minimize' or 'maximize'"),
        ("   ", "", "ends too early"),
        ("fnr", "fnr", "starts with 'minimize' or 'maximize'"),
        ("minimize", "", "ends too early. Known rates: fpr, tnr"),
        ("maximize prescision subject to recall >= 1", "prescision", "Did you mean 'precision'?"),
        ("maximize fscore(2)", "fscore", "Did you mean 'f_score'?"),
        ("maximize maximum(fpr, fnr)", "maximum", "Did you mean 'max'?"),
        ("minimize xyzzy", "xyzzy", "Known rates: fpr"),
        ("minimize fnr subjct to fpr <= 0.1", "subjct", "Did you mean 'subject'?"),
        ("minimize fnr subject too fpr <= 0.1", "too", "Did you mean 'to'?"),
        ("minimize fnr subject to fpr < 0.1", "<", "written <= and >="),
        ("minimize fnr subject to fpr <= ", "", "Expected a number, such as 0.01 or 1 %"),
        ("minimize fnr subject to fpr <= fnr", "fnr", "Expected a number"),
        ("minimize fnr subject to fpr <= 95", "fpr <= 95", "For 95 % write 0.95"),
        ("minimize fnr subject to fpr at 0", "fpr at 0", "write `fpr <= 0`"),
        ("minimize fnr subject to fpr <= 0.1 and", "", "Known rates"),
        ("minimize fnr subject to fpr <= 0.1 annd fnr <= 1", "annd", "Did you mean 'and'?"),
        ("minimize fnr subject to 0.1 <= 0.2", "0.1 <= 0.2", "contains no rate"),
        (
            "minimize fnr subject to fpr at 0.1 and fnr <= 0.2",
            "fpr at 0.1 and fnr <= 0.2",
            "already fixes",
        ),
        ("minimize 3", "3", "contains no rate: nothing to minimize"),
        ("minimize fpr - fpr", "fpr - fpr", "contains no rate"),
        ("minimize fpr fnr", "fnr", "an operator or the end"),
        ("minimize fpr / 0", "fpr / 0", "Cannot divide fpr by zero"),
        ("minimize fpr / fnr / tpr", "/", "an operator or the end"),
        ("minimize fpr * fnr", "*", "an operator or the end"),
        ("minimize 1e999 fpr", "1e999", "too large a number"),
        ("minimize 1e308 fpr + 1e308 fpr", "1e308 fpr + 1e308 fpr", "finite number"),
        ("minimize (1e308 TP + 1e308 TP) / (1)", "(1e308 TP + 1e308 TP", "finite number"),
        ("minimize (TP) / (TP - TP)", "(TP) / (TP - TP)", "denominator of a rate is zero"),
        ("minimize (2 TP + 1) / fpr", "fpr", "Expected '('"),
        ("minimize (TP + fpr) / (TP)", "fpr", "Expected TP, FP, FN or TN"),
        ("minimize (TP FP) / (TP)", "FP", "Expected '+'"),
        ("minimize f_score(0)", "f_score(0)", "beta must be positive"),
        ("minimize f_score(x)", "x", "Expected a number"),
        ("minimize abs(fpr, fnr)", "abs(fpr, fnr)", "abs takes one expression"),
        ("minimize (fpr, fnr)", ",", "Expected ')'"),
        ("minimize max fpr", "fpr", "Expected '('"),
        ("minimize max(fpr, fnr", "", "ends too early. Expected ')'"),
        ("minimize fpr on a", "", "Expected '='"),
        ("minimize fpr on 3=4", "3", 'on group="a"'),
        ("minimize fpr on a=5 %", "5 %", "a string or a number"),
        ("minimize fpr on a=and", "and", "a string or a number"),
        ("minimize fpr on a='b", "'", "never closed"),
        ("maximize fnr_at_fpr(0.1)", "maximize", "fnr_at_fpr is minimized"),
        ("fnr_at_fpr(2)", "fnr_at_fpr(2)", "share between 0 and 1"),
        ("precision_at_k(1, off=3)", "precision_at_k(1, off=3)", "unexpected keyword"),
        ("maximize recall subject to demographic_parity(0.1)", None, "Name the groups"),
        ("minimize cost(miss=5)", "cost(miss=5)", "Name what both errors cost"),
        ("minimize cost(miss=-5, false_alarm=1)", None, "miss must be at least 0"),
        ('minimize fpr on a="b', '"', "never closed"),
        (r'minimize fpr on a="\q"', r'"\q"', "escape"),
        (r'minimize fpr on a="\ud800"', r'a="\ud800"', "a string or a number"),
        (r'minimize fpr on "\ud800"=1', r'"\ud800"=1', "column of a slice is a string"),
        ("minimize fpr on a=1 & a=2", "a=2", "no example is also 2"),
        ("minimize fpr on a=" + "9" * 5000, "9" * 5000, "4300 digits"),
        ("minimize fpr on a=" + "9" * 1001, "a=" + "9" * 1001, ""),
        ("minimize fnr over error in [0, 1]", "error in [0, 1]", "moves one way"),
        ("minimize fnr over fpr in [0.5, 0.1]", "fpr in [0.5, 0.1]", "from low to high"),
        ("minimize fnr over fpr in 0, 1", "0", "Expected '['"),
        ("minimize fnr over fpr", "", "Expected 'in'"),
        ("minimize fnr with 3 thresholds", "with 3 thresholds", "need a range"),
        ("minimize fnr with 2.5 thresholds", "with 2.5 thresholds", "whole number"),
        ("minimize fnr over fpr in [0, 1] with 0 thresholds", "with 0 thresholds", "at least 1"),
        (
            "minimize fnr over fpr in [0, 1] with thresholds per group",
            "with thresholds per group",
            "bins",
        ),
        ("minimize fnr with thresholds", "", "Expected 'per'"),
        ("minimize fnr wiht thresholds per group", "wiht", "Did you mean 'with'?"),
        ("minimize fnr per", "", "ends too early"),
        ("minimize fnr subject to fpr <= 0,5 %", "0,5 %", "with a decimal point: 0.5 %"),
        ("minimize fnr per 3", "3", "the name of a column of queries"),
        ("minimize fnr per query per query", "per", "of one column of queries"),
        (
            "minimize error subject to coverage <= 0.2 with thresholds per group per query",
            "per query",
            "cannot also be asked of every query",
        ),
        ("minimize fnr; drop table", ";", "No sentence needs this character"),
        ("minimize fnr % fpr", "%", "follows a number"),
        ("minimize\tfnr\nsubject to\tfprr <= 1", "fprr", "Did you mean 'fpr'?"),
        ("minimize " + 200 * "(" + "fpr", "(", "nested too deeply"),
        ("minimize " + 70 * "abs(" + "fpr" + 70 * ")", None, "nested 50 deep"),
    ],
    ids=lambda x: x[:60] if isinstance(x, str) else "",
)
def test_an_error_points_at_the_word_and_says_what_to_do(sentence, word, advice):
    message, pointed_at = error_of(sentence)
    assert advice in message
    if word is not None:
        assert pointed_at.strip() == word or (len(word) > SHOWN and word.startswith(pointed_at))


@pytest.mark.parametrize("name", [*CATALOGUE, "f_score"])
def test_a_typo_in_a_name_is_answered_with_the_name(name):
    for typo in (name + "x", name[0] + name):
        message, pointed_at = error_of(f"minimize 2 {typo} subject to fnr <= 0.1")
        assert pointed_at == typo
        close = re.search("Did you mean '(.*)'", message)
        assert close is not None
        assert len(name) < 5 or close.group(1) == name


@pytest.mark.parametrize("sentence", [None, 3, b"minimize fnr", ["minimize fnr"], sp.fnr])
def test_only_text_is_parsed(sentence):
    with pytest.raises(TypeError, match="reads a sentence; got"):
        sp.Problem.parse(sentence)


VOCABULARY = [
    *(
        "minimize",
        "maximize",
        "subject",
        "to",
        "over",
        "in",
        "at",
        "and",
        "with",
        "on",
        "per",
        "group",
    ),
    *("threshold", "thresholds", "abs", "max", "min", "f_score", "True", "False", *CATALOGUE),
    *(
        "TP",
        "FP",
        "FN",
        "TN",
        "<=",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "(",
        ")",
        "[",
        "]",
        ",",
        "=",
        "&",
        "%",
    ),
    *(
        "0",
        "1",
        "0.01",
        "1e999",
        "1e-320",
        "10",
        "2.5",
        "1 %",
        '"a"',
        '"',
        "'",
        "\\",
        "\x00",
        "é",
        "½",
    ),
]
LEGAL = (ValueError, TypeError)


def check_refusal(sentence):
    """Whatever is written: a problem that reads back, or an error that points into the sentence."""
    try:
        problem = sp.Problem.parse(sentence)
    except LEGAL:
        message, _ = error_of(sentence)
        assert len(message) > 10
        assert "object has no attribute" not in message
        assert "unsupported operand" not in message
    else:
        assert sp.Problem.parse(str(problem)) == problem


@examples(200)
@given(st.text())
@example("minimize " + "fpr + " * 500 + "fpr")
@example("minimize " + "-" * 5000 + "fpr")
def test_any_text_is_read_or_refused(text):
    check_refusal(text)
    check_refusal("minimize " + text)


@examples(400)
@given(st.randoms(use_true_random=True))
def test_any_words_are_read_or_refused(random):
    words = [random.choice(VOCABULARY) for _ in range(random.randrange(12))]
    check_refusal(random.choice(["minimize fpr ", "minimize ", ""]) + " ".join(words))


@examples(400)
@given(problems(), st.randoms(use_true_random=True))
def test_any_mutation_of_a_sentence_is_read_or_refused(problem, random):
    sentence = str(problem)
    for _ in range(random.randrange(1, 4)):
        at, until = sorted(random.choices(range(len(sentence) + 1), k=2))
        until = min(until, at + random.randrange(4))
        new = random.choice(["", random.choice(VOCABULARY), random.choice(string.printable)])
        sentence = sentence[:at] + new + sentence[until:]
    check_refusal(sentence)
