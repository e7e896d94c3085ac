"""The words of goals: what sentences may say besides the names of rates, and what it stands for.

To teach the parser a phrase, add a line to :data:`PHRASES`; to let sentences call a function, put
it into :data:`EXPRESSIONS` or :data:`TARGETS`, or decorate a goal with :func:`goal`. The page of
the grammar (docs/goals.md) is made from these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import setpoint.fairness as fairness
from setpoint.axes.specification import Specification
from setpoint.rates import Expression, Fold, maximum, minimum

F = TypeVar("F", bound=Callable[..., Any])

PHRASES: dict[str, str] = {
    "maximise": "maximize",
    "minimise": "minimize",
    "s.t.": "subject to",
    "st": "subject to",
    "such that": "subject to",
    "while keeping": "subject to",
    "constrained to": "subject to",
    "at most": "<=",
    "no more than": "<=",
    "not more than": "<=",
    "not above": "<=",
    "no higher than": "<=",
    "no greater than": "<=",
    "not exceed": "<=",
    "up to": "<=",
    "at least": ">=",
    "no less than": ">=",
    "not less than": ">=",
    "no lower than": ">=",
    "not below": ">=",
    "≤": "<=",
    "=<": "<=",
    "≥": ">=",
    "=>": ">=",
    "==": "=",
    "sensitivity": "recall",
    "hit rate": "recall",
    "detection rate": "recall",
    "true positive rate": "tpr",
    "specificity": "tnr",
    "true negative rate": "tnr",
    "false positive rate": "fpr",
    "false alarm rate": "fpr",
    "false acceptance rate": "fpr",
    "fallout": "fpr",
    "fall out": "fpr",
    "false negative rate": "fnr",
    "false rejection rate": "fnr",
    "miss rate": "fnr",
    "ppv": "precision",
    "positive predictive value": "precision",
    "negative predictive value": "npv",
    "fdr": "(1 - precision)",
    "false discovery rate": "(1 - precision)",
    "false omission rate": "(1 - npv)",
    "alert rate": "coverage",
    "alert share": "coverage",
    "acceptance rate": "coverage",
    "approval rate": "coverage",
    "selection rate": "coverage",
    "error rate": "error",
    "balanced error rate": "balanced_error",
    "balanced accuracy": "(1 - balanced_error)",
    "youden": "(tpr - fpr)",
    "informedness": "(tpr - fpr)",
    "matthews": "mcc",
    "matthews correlation": "mcc",
    "matthews correlation coefficient": "mcc",
    "matthews corrcoef": "mcc",
    "phi coefficient": "mcc",
    "cohen kappa": "kappa",
    "iou": "jaccard",
    "dice": "f_score(1)",
    "f1": "f_score(1)",
    "f2": "f_score(2)",
    "fbeta": "f_score",
    "f beta": "f_score",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "roc auc": "roc_auc",
    "auc roc": "roc_auc",
    "auprc": "pr_auc",
    "pr auc": "pr_auc",
    "auc pr": "pr_auc",
    "ap": "pr_auc",
    "average precision": "pr_auc",
}
"""What people write, in lower case, and the words it stands for; the words of a phrase may be
joined by underscores or hyphens, and a score may be called one (``f1_score``)."""

_NUMBER = r"(\d*\.?\d+(?: ?%)?)"
_NO_COUNT = r"(?! ?(?:[<>]=?|=|at most|under|below) ?\d+(?: ?$| [^%]))"
"""Where a whole number follows, a count is meant, and no share."""
_PERIOD = "(hour|day|week|month)"
_COSTS = "cost(miss=10, false_alarm=1)"
_PARITY = "demographic_parity|predictive_parity|equal_opportunity|equalized_odds"
_CHANCE = r"(?:at most |up to |no more than |max )?"
NEARLY: tuple[tuple[str, str], ...] = (
    (r"^(?:please|i (?:want|need|would like))(?: to)? ", ""),
    (r"^(?:reduce|lower|decrease|cut) ", "minimize "),
    (r"^(?:increase|improve|raise|(?:best|highest|largest)(?! ?\()) ", "maximize "),
    (r"\bheld at\b", "at"),
    (r"(\d) ?(?:prozent|procent|pct)\b\.?", r"\1 %"),
    (r"(\d) ?(?:‰|pro ?mille?\b|per ?mille?\b)", r"\1e-3"),
    (r"(\d) ?(?:bps?|basis points)\b", r"\1e-4"),
    (r"(\d) ?(?:eur|euros?|usd|dollars?|gbp|chf|[€$£])(?=\W|$)", r"\1"),
    (r"[€$£] ?(?=\d)", ""),
    (r"\|([^|]+)\|", r"abs(\1)"),
    (r"\bof class (?=[\d\"'])", "of "),
    (r"\bmissrate\b", "miss rate"),
    (r"\bselectivity\b", "specificity"),
    (r"^(?:statistical )?power\b", "recall"),
    (r"^for(?= ?[<>]?=? ?\d)", "false omission rate"),
    (r"\b(?:alert|review|flag|selection|acceptance|approval)[ _-]?rate\b", "coverage"),
    (r"^top[ _-]?(\d+) accuracy$|^top-(\d+)$", r"top_k(\1\2)"),
    (r"^[\"'](.*)[\"']$", r"\1"),
    (r"^tp ?/ ?\( ?tp ?\+ ?fp ?\)", "precision"),
    (r"^tp ?/ ?\( ?tp ?\+ ?fn ?\)", "recall"),
    (r"^fp ?/ ?\( ?fp ?\+ ?tn ?\)", "fpr"),
    (r"\b(?:one[ _-]vs[ _-](?:rest|all)|ovr)[ _-]auc\b", "one_vs_all_auc"),
    (r"\bdisparate impact(?: ratio)?\b", "ratio(coverage, group=[a, b])"),
    (r"\bthresholds? (?:per|by|for each|for every) (?!group)\w+", "thresholds per group"),
    (rf"^(\w+) ?([<>]=) ?{_NUMBER} on (\w+) ?= ?(\w+)$", r"\1 on \4=\5 \2 \3"),
    (
        rf"^(\w+ )?(\w+) at {_NUMBER} (recall|tpr|precision|npv) and ",
        r"\1\2 subject to \4 >= \3 and ",
    ),
    (rf"^(\w+ )?(\w+) at {_NUMBER} (fpr|fnr|coverage) and ", r"\1\2 subject to \4 <= \3 and "),
    (
        rf"^(?:catch|find|detect) (?:at least )?{_NUMBER}(?: of [^\d]*?)? (?:with|at|and) "
        rf"{_CHANCE}{_NUMBER} (?:false[ _-](?:alarms?|positives?)(?: rate)?|fpr)$",
        r"recall >= \1 and fpr <= \2",
    ),
    (
        r"^(?:at most|no more than|up to) (\d*\.?\d+ ?%|1 in 10+) (?:of )?(?:all |the )?"
        r"(?:legitimate|honest|good|genuine|negative|healthy|normal)s?\b[^\d]*$",
        r"fpr <= \1",
    ),
    (
        rf"^(?:review|flag|block|stop|check) {_CHANCE}(\d+)(?: \w+)? (?:per|an?|every|each) "
        rf"{_PERIOD}$",
        r"alerts <= \1 per \2 on 95 % of \2s",
    ),
    (r"^fpr ?(?:@|at|_at_)? ?95(?: ?%)?$", "fpr at 95 % recall"),
    (rf"^(fpr|fnr|error|coverage) ?@ ?{_NUMBER}$", r"\1 at \2"),
    (rf"^coverage(?:_| )at(?:_| )(\w+)\(?{_NUMBER}\)?$", r"maximize coverage at \2 \1"),
    (
        r"^(?:maximi[sz]e )?(?:roc[ _-]?)?auc (?:subject to|s\.t\.|with|where) fpr "
        rf"?<=? ?{_NUMBER}$",
        r"roc_auc(fpr=[0, \1])",
    ),
    (
        rf"\b(?:partial[ _-]?auc|p_?auc|(?:roc_)?auc)\(fpr ?<=? ?{_NUMBER}\)",
        r"roc_auc(fpr=[0, \1])",
    ),
    (r"\b(\w+)\.of\((\"[^\"]*\"|'[^']*'|\d+)\)", r"\1 of \2"),
    (r"\b(\w+) of (?!class)([^\W\d]\w*)(?= ?[<>]?= ?\d)", r'\1 of "\2"'),
    (
        r"\bprecision(?: at |_at_k\(|@)(\d+)\)?(?:\.| )?per[ (\"']+(\w+)[\"')]*",
        r"precision_at_k(\1) per \2",
    ),
    (rf"\b(\w+) in \[ ?{_NUMBER}, ?{_NUMBER} ?\]$", r"\1 >= \2 and \1 <= \3"),
    (rf"^(?:fix|set|hold|keep|pin) (\w+) (?:to|at) {_NUMBER}$", r"\1 at \2"),
    (rf"^(?:minimi[sz]e|maximi[sz]e) (\w+ ?[<>]= ?{_NUMBER})$", r"\1"),
    (rf"^[0.]+ ?<=? ?(\w+) ?<=? ?{_NUMBER}$", r"\1 <= \2"),
    (r"(\d ?%)%+", r"\1"),
    (r"\bone per ?cent\b", "1 %"),
    (r"\bfnr at fpr ?\(", "fnr_at_fpr("),
    (r"\bf_?beta\(beta ?= ?", "f_score("),
    (rf"^miss {_CHANCE}{_NUMBER}(?: of [^\d]*)?$", r"fnr <= \1"),
    (rf"^(?:catch|find|detect) (?:at least )?{_NUMBER}(?: of [^\d]*)?$", r"recall >= \1"),
    (
        rf"^(?:flag|review|block|stop|alert) {_CHANCE}(\d*\.?\d+ ?%)(?: of [^\d]*)?$",
        r"coverage <= \1",
    ),
    (r"^(?:approve|accept) (?:at least )?(\d*\.?\d+ ?%)(?: of [^\d]*)?$", r"coverage >= \1"),
    (rf"^max(?:imum|imal)? ([a-z_ ]+?)(?: of)? {_NUMBER}$", r"\1 <= \2"),
    (rf"^min(?:imum|imal)? ([a-z_ ]+?)(?: of)? {_NUMBER}$", r"\1 >= \2"),
    (rf"\bmax(?:imum|imal)? {_NUMBER}", r"at most \1"),
    (rf"\bmin(?:imum|imal)? {_NUMBER}", r"at least \1"),
    (r"^top (\d+) (precision|recall)$", r"\2 at \1 alerts"),
    (r"\b(?:at|in|of|among|for)(?: the)? top (\d+)$", r"at \1 alerts"),
    (r"\b(?:at|in|of|among|for)(?: the)? top (\d*\.?\d+ ?%)$", r"at \1 coverage"),
    (rf"^(\w+) ?>=? ?{_NUMBER} at {_NUMBER} (fpr|coverage)$", r"\1 >= \2 and \4 <= \3"),
    (r"\s*<(?!=)\s*", " <= "),
    (r"\s*>(?!=)\s*", " >= "),
    (r"\b(?:under|below|(?:less|lower|smaller|fewer) than)\b", "<="),
    (r"\b(?:over|above|(?:more|greater|higher|larger) than)\b", ">="),
    (rf"\bfalse[ _-](?:positives|alarms)\b{_NO_COUNT}|\btype (?:1|i) error\b|\bfar\b", "fpr"),
    (rf"\bfalse[ _-]discover(?:y|ies)\b{_NO_COUNT}", "fdr"),
    (rf"\b(?:false[ _-]negatives|misses)\b{_NO_COUNT}|\btype (?:2|ii) error\b|\bfrr\b", "fnr"),
    (r"\b(?:tar|true[ _-]positives)\b", "tpr"),
    (r"\bsens\b", "sensitivity"),
    (r"\bspec\b", "specificity"),
    (r"\bacc\b|\bmicro[ _-]f1\b", "accuracy"),
    (r"\b(?:bacc|g[ _-]?mean|geometric mean)\b", "balanced accuracy"),
    (r"\b(?:youden'?s?(?: j| index)?|ks)\b", "youden"),
    (r"^(?:minimi[sz]e )?(?:eer|equal error rate)$", "minimize max(fpr, fnr)"),
    (r"^(?:map|mean average precision)$", "average precision per query"),
    (r"\bf[ _-]?(\d\.?\d*)\b", r"f_score(\1)"),
    (r"\bf_?(?:beta|score)$", "f_score(1)"),
    (r"\bf[ _-]?beta (\d\.?\d*)", r"f_score(\1)"),
    (r"\bworst[ -](?:class )?(\w+)\b", r"lowest(\1)"),
    (r"\bmacro[ _-](\w+)|\b(\w+)_macro\b", r"macro(\1\2)"),
    (
        rf"\b(?:partial[ _-]?auc|p_?auc|roc_auc)\((?:max_fpr ?= ?)?{_NUMBER}\)",
        r"roc_auc(fpr=[0, \1])",
    ),
    (
        r"\b(?:(?:partial|roc)[ _-]?auc|p_?auc|auc)(?: (?:for|at|with|up to))? "
        rf"fpr ?<?=? ?{_NUMBER}$",
        r"roc_auc(fpr=[0, \1])",
    ),
    (rf"\b(?:roc[ _-]?)?auc between fpr {_NUMBER} and {_NUMBER}", r"roc_auc(fpr=[\1, \2])"),
    (r"\b(?:partial[ _-]?auc|p_?auc)$", "roc_auc(fpr=[0, 0.1])"),
    (r"^p(?:recision)? ?@ ?k ?=? ?(\d+)$", r"precision at \1 alerts"),
    (r"_at_k\((\d+)\)|\s*@\s*(\d+)$| at k ?= ?(\d+)$| at (\d+)$", r" at \1\2\3\4 alerts"),
    (r"\s*@\s*k$|_at_k$", " at 100 alerts"),
    (r"^p(?=\s*@)", "precision"),
    (rf"_at_(\w+)\({_NUMBER}\)", r" at \2 \1"),
    (rf"(?:\s*@\s*| at )([a-z]\w*) ?(?:=|<=)? ?{_NUMBER}", r" at \2 \1"),
    (rf"\s*@\s*{_NUMBER}$", r" at \1 fpr"),
    (r"\s*@\s*", " at "),
    (r"_at_fpr$", "_at_fpr(0.01)"),
    (r"_at_(recall|precision)$", r"_at_\1(0.9)"),
    (r"\b(\d+) ?\*? ?fn ?\+ ?fp\b", r"cost(miss=\1, false_alarm=1)"),
    (r"\b(\d+) ?\*? ?fn ?\+ ?(\d+) ?\*? ?fp\b", r"cost(miss=\1, false_alarm=\2)"),
    (r"\bfn ?\+ ?fp\b|\bfp ?\+ ?fn\b", "error"),
    (r"\b(?:fn|false[ _]negatives?|misses) ?=", "miss="),
    (r"\b(?:fp|false[ _]positives?|false[ _]alarms?) ?=", "false_alarm="),
    (
        r"\b(?:costs?:?|with|a) .*?\bmiss(?:es)?(?: costs?)? ?=? ?([\d.]+)\b.*?"
        r"\bfalse[ _](?:alarms?|positives?)(?: costs?)? ?=? ?([\d.]+)$",
        r"cost(miss=\1, false_alarm=\2)",
    ),
    (rf"\bcost\({_NUMBER}, ?{_NUMBER}\)", r"cost(miss=\1, false_alarm=\2)"),
    (r"\b(?:expected |total )?costs?\b(?! ?\()", _COSTS),
    (
        r"^(?:maximi[sz]e )?(?:profit|revenue|savings|utility)\b|^(?:minimi[sz]e )?loss\b",
        f"minimize {_COSTS}",
    ),
    (r"\b(demographic|predictive)[ -]parity\b", r"\1_parity"),
    (r"\b(equal)[ -](opportunity)\b", r"\1_\2"),
    (r"\bequali[sz]ed[ _-]odds\b", "equalized_odds"),
    (rf"\b({_PARITY})(?:\([^=]*\))?$", r"\1(0.02, group=[a, b])"),
    (
        rf"\b({_PARITY})(?: gap| difference)?:? ?(?:<=?|of|at most|within)? ?{_NUMBER} "
        r"(?:by |for |on |per |across |between )?(\w+)[ =:]+(\w+)(?:, ?| and | or |/| )(\w+)$",
        r"\1(\2, \3=[\4, \5])",
    ),
    (
        rf"\b({_PARITY})(?: gap| difference)? ?(?:<=?|of|at most|within)? ?{_NUMBER} "
        r"(?:by|for|on|per|across|between) (\w+)$",
        r"\1(\2, \3=[a, b])",
    ),
    (
        rf"^alerts (?:per|an?|every|/) ?{_PERIOD}(?: ?<=?| at most| under| below)? ?(\d+)$",
        r"alerts <= \2 per \1 on 95 % of \1s",
    ),
    (
        rf"^(?:at most |up to |no more than )?(?:alerts <=? )?(\d+)(?: alerts)?"
        rf" ?(?:per|an?|every|/) ?{_PERIOD}$",
        r"alerts <= \1 per \2 on 95 % of \2s",
    ),
    (
        rf"^(?:at most |up to |no more than )?(\d+) alerts (?:per|an?|every) {_PERIOD} on ",
        r"alerts <= \1 per \2 on ",
    ),
    (r"(?<=\[)(\w+) (\w+)(?=\])", r"\1, \2"),
    (rf"^(\w+) (?:per|by|in each|for each) (\w+) ?<= ?{_NUMBER}$", r"largest(\1, \2=[a, b]) <= \3"),
    (
        rf"^(\w+) ?<= ?{_NUMBER} (?:per|by|(?:in|for) (?:each|every|all)(?: groups? of)?) "
        r"([^\W\d]\w*)$",
        r"largest(\1, \3=[a, b]) <= \2",
    ),
    (r"\bfor (?=\w+ ?=)", "on "),
    (
        r"\b(\w+) between ([\d.]+) and ([\d.]+ ?(?:%|per ?cent\b))",
        r"\1 >= \2 % and \1 <= \3",
    ),
    (rf"\b(\w+) between {_NUMBER} and {_NUMBER}", r"\1 >= \2 and \1 <= \3"),
    (rf"^{_NUMBER} ?<=? ?(\w+) ?<=? ?{_NUMBER}$", r"\2 >= \1 and \2 <= \3"),
    (rf"^{_NUMBER} ?<=? ?(\w+)$", r"\2 >= \1"),
    (rf"^{_NUMBER} ?>=? ?(\w+)$", r"\2 <= \1"),
    (r"^top (\d.*%)$", r"coverage <= \1"),
    (r"^top (\d+)$", r"alerts <= \1"),
    (rf"^{_NUMBER} (\w+)$", r"at most \1 \2"),
    (rf"^(fpr|fnr|error|coverage)(?: of)? {_NUMBER}$", r"\1 <= \2"),
    (rf"^(\w+)(?: of)? {_NUMBER}$", r"\1 >= \2"),
    (r"\b1 ?(?:/|in|per|out of) ?10(0*)\b", r"0.\g<1>1"),
    (r"^(?!.*\b(?:false|misses)\b)(.*?(?:[<>]=|\bat) \d+)(?=$| and\b| with\b)", r"\1 %"),
    (r"(\d),(\d)", r"\1.\2"),
    (r"^(?=.*\(.*=.* with thresholds)", "minimize error subject to "),
    (r"^(?=.*[<>]=.* with thresholds)", "maximize recall subject to "),
    (r"\bs\.t (?!\.)|\bsubject (?!to\b)", "subject to "),
    (r" ?,? ?\b(?:with|at) [\d.]+ ?%? confidence(?: level)?$", ""),
    (r"^(?:subject to|s\.t\.|st)\b\.?", ""),
    (r"\b(?:keep|hold|must|should|be|is|the|a|an|of)\b", " "),
    (r"\s*[:;,!]+(?=\s|$)|\.$", " "),
)
"""Patterns of what people write that cannot be read, and what to offer instead: not the same."""

FOLDS: dict[str, Callable[..., Expression]] = {
    "abs": lambda *parts: Fold("abs", parts),
    "max": maximum,
    "min": minimum,
}
EXPRESSIONS: dict[str, Callable[..., Expression]] = {
    each.__name__: each
    for each in (fairness.gap, fairness.ratio, fairness.largest, fairness.smallest)
}
"""Functions of a rate and groups, as in ``gap(tpr, sex=[f, m])``."""
TARGETS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        fairness.demographic_parity,
        fairness.equal_opportunity,
        fairness.equalized_odds,
        fairness.predictive_parity,
        fairness.bounded_group_loss,
        fairness.four_fifths,
    )
}
"""Functions that give one bound or several, as in ``demographic_parity(0.02, sex=[f, m])``."""
GOALS: dict[str, Callable[..., Specification]] = {}
"""Functions that give a whole problem, as in ``fnr_at_fpr(0.01)``."""


def goal(function: F) -> F:
    """Let sentences call a function that makes a problem; a decorator."""
    GOALS[function.__name__] = function
    return function
