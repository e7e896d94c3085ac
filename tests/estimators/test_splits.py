"""Clusters stay whole, the past trains, the latest rows certify; copies and repeated tries."""

from itertools import pairwise

import numpy as np
import pytest
import sklearn
from samples import draw_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from setpoint import Problem, coverage, recall
from setpoint.certificates.copies import row_digests
from setpoint.certificates.hold_out import Related
from setpoint.estimators import (
    CertifiedThreshold,
    Classifier,
    CopiedRowsWarning,
    NotCertifiedWarning,
)
from setpoint.estimators.splits import last_of_cv, three_parts

GOAL = "maximize recall subject to fpr <= 0.1"


def customers(count=800, rows=6, seed=0, gap=2.0):
    """Rows of customers who are alike: features, labels, who."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), rows)
    x, y = draw_array(count, seed, gap=gap, features=3)
    return x[who] + 0.1 * random.normal(size=(count * rows, 3)), y[who], who


def models(**options):
    return [
        CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=0, **options),
        Classifier(GOAL, model="linear", epochs=2, random_state=0, **options),
    ]


both = pytest.mark.parametrize("model", models(), ids=lambda m: type(m).__name__)


@both
def test_clusters_stay_whole_and_count_once(model):
    x, y, who = customers()
    model.fit(x, y, clusters=[f"c{name}" for name in who])
    parts = [set(who[rows]) for rows in model.splits_.values()]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 800
    assert model.certificate_.clusters == len(parts[-1]) == 160
    assert "cluster" in str(model.certificate_)


@both
def test_customers_drawn_without_a_positive_prove_nothing_and_are_no_error(model):
    x, _, who = customers(30, rows=60)
    y = (np.arange(len(x)) % 60 == 0).astype(int)
    with pytest.warns(NotCertifiedWarning, match="one row of each cluster. Pass rows of more"):
        model.fit(x, y, clusters=who)
    assert model.certificate_ is None
    assert np.isfinite(model.threshold_)


def test_the_promise_for_new_customers_that_rows_by_lot_break():
    """600 customers x 10 rows and a forest: fpr <= 5 % is promised; by rows it is twice as much."""
    x, y, who = customers(600, 10, seed=3, gap=1.0)
    new, truth, _ = customers(4000, 1, seed=4, gap=1.0)
    forest = RandomForestClassifier(40, random_state=0)
    model = CertifiedThreshold(forest, goal="fpr <= 0.05", random_state=0)

    def rate():
        return model.predict(new)[truth == 0].mean()

    model.fit(x, y)
    assert model.certificate_.certified
    assert rate() > 0.1
    model.fit(x, y, clusters=who)
    assert model.certificate_.certified
    assert rate() <= 0.05


@both
@pytest.mark.parametrize("kind", ["numbers", "dates", "texts"])
def test_the_past_trains_and_the_latest_rows_certify(model, kind):
    x, y = draw_array(3000, gap=2.0, features=3)
    days = np.random.default_rng(1).integers(0, 100, 3000)
    dates = np.datetime64("2024-01-01") + days
    order = {"numbers": days, "dates": dates, "texts": [str(date) for date in dates]}[kind]
    model.fit(x, y, order=order)
    parts = [days[rows] for rows in model.splits_.values()]
    assert sum(map(len, parts)) == 3000
    assert all(early.max() < late.min() for early, late in pairwise(parts))
    assert len(parts[-1]) == pytest.approx(600, abs=20)  # a day has about 30 rows
    first, last = dates[model.splits_["calibration"]].min(), dates.max()
    told = model.certificate_.period
    assert told == ((str(parts[-1].min()), "99") if kind == "numbers" else (str(first), str(last)))


@both
def test_latest_rows_that_drift_are_certified_on_request_only(model):
    x, y = draw_array(4000, gap=2.0, features=3)
    time = np.arange(4000)
    x[3200:] += np.linspace(0, 3, 800)[:, None]
    with pytest.warns(NotCertifiedWarning, match="drift"):
        model.fit(x, y, order=time)
    assert not model.certificate_.certified
    model = sklearn.clone(model).set_params(accept_drift=True).fit(x, y, order=time)
    assert model.certificate_.certified
    assert "drift" in model.certificate_.verdict


def test_with_clusters_and_order_other_clusters_train_on_the_past():
    _, y, who = customers(400, 10)
    time = np.random.default_rng(0).integers(0, 1000, len(y))
    related = Related.read(who, time, y)
    random = np.random.RandomState(0)
    parts = three_parts(y, 0.2, 0.2, random, related=related)
    names = [set(who[rows]) for rows in parts.values()]
    assert sum(map(len, names)) == len(set().union(*names))
    for early, late in (("train", "validation"), ("validation", "calibration")):
        assert time[parts[early]].max() < time[parts[late]].min()
    late_clusters = set(who[time >= time[parts["calibration"]].min()])
    assert len(names[2]) == pytest.approx(len(late_clusters) / 2, abs=20)  # nearly all come back
    # customers who come once: all late ones certify
    once = Related.read(np.arange(1000), np.arange(1000), np.zeros(1000))
    past, latest = once.hold_out(0.2, random)
    assert (past == np.arange(800)).all()
    assert (latest == np.arange(800, 1000)).all()


def test_rows_of_one_time_are_not_divided():
    related = Related.read(None, [2, 1, 1, 1, 2, 1, 2, 3], np.zeros(8))
    past, latest = related.hold_out(0.4, np.random.RandomState(0))
    assert sorted(past) == [1, 2, 3, 5]  # 4.8 wanted; after 4 or 7 a new time begins
    assert sorted(latest) == [0, 4, 6, 7]


def test_splitters_of_scikit_learn():
    x, y, who = customers()
    for cv in (GroupShuffleSplit(1, test_size=0.3, random_state=0), GroupKFold(4)):
        for model in models(cv=cv):
            model.fit(x, y, clusters=who)
            *_, (train, test) = cv.split(x, y, groups=who)
            assert (model.splits_["calibration"] == test).all()
            known = set(model.splits_["train"]) | set(model.splits_.get("validation", ()))
            assert known == set(train)
    shuffled = np.random.default_rng(0).permutation(len(y))
    for model in models(cv=TimeSeriesSplit(3)):
        model.fit(x, y, order=shuffled)
        assert shuffled[model.splits_["calibration"]].min() == 3 * len(y) // 4
    rows = np.arange(len(y))
    for model in models(cv=[(rows[:4000], rows[4000:])]):
        model.fit(x, y)
        assert (model.splits_["calibration"] == rows[4000:]).all()
    with pytest.warns(NotCertifiedWarning, match="sample weights"):
        model.fit(x, y, sample_weight=np.linspace(1, 2, len(y)))
    assert model.certificate_ is None
    mask = rows % 5 == 0
    model = models(cv=[(~mask, mask)])[0].fit(x, y)
    assert (model.splits_["calibration"] == rows[mask]).all()


@pytest.mark.parametrize(
    ("cv", "error"),
    [
        (KFold(5), r"\d+ clusters on both sides"),
        (GroupShuffleSplit(1), "pass clusters= to fit"),
        ([([0, 1, 2], [2, 3])], "1 row on both sides"),
        ([([0, 1, 2], [])], "leaves a side empty"),
        ([], "cv must be None"),
        ([([0, 1], [2, 10_000])], "row number that is not among the"),
        ("folds", "cv must be None"),
        ([1, 2], "cv must be None"),
    ],
)
def test_splits_that_divide_clusters_or_share_rows_are_refused(cv, error):
    y, who = np.zeros(100), np.random.default_rng(0).integers(0, 25, 100)
    related = Related.read(who, None, y) if isinstance(cv, KFold) else Related()
    with pytest.raises(ValueError, match=error):
        last_of_cv(cv, np.zeros((100, 1)), y, related)


@both
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"clusters": np.r_[np.nan, np.arange(199.0)]}, "no id in row 0"),
        ({"clusters": ["a", None] * 100}, "no id in row 1"),
        ({"clusters": np.ones(200)}, "one cluster"),
        ({"clusters": np.arange(199)}, r"clusters must have the shape.*\(199,\)"),
        ({"order": np.r_[np.arange(199.0), np.nan]}, "order has no time in row 199"),
        ({"order": ["2024-01-01", "soon"] * 100}, "order has 'soon' in row 1"),
        ({"order": np.ones(200)}, "same time in all rows"),
        ({"order": np.arange(100)}, r"order must have the shape.*\(100,\)"),
        (
            {"clusters": np.arange(200) // 199, "order": np.r_[1, np.zeros(198), 1]},
            "left to train on",
        ),
    ],
)
def test_bad_clusters_and_times_certify_nothing(model, given, error):
    x, y = draw_array(200, features=3)
    with pytest.raises(ValueError, match=error):
        sklearn.clone(model).fit(x, y, **given)


def test_without_times_nobody_is_told_of_late_rows():
    with pytest.raises(ValueError, match=r"Of 1 cluster 1 must be held out.* leave clusters= out"):
        Related(np.zeros(5, np.int64)).hold_out(0.2, np.random.RandomState(0))


def test_groups_with_a_threshold_each_are_chosen_and_proved_on_other_clusters():
    x, y, who = customers(1200, 3)
    sex = np.where(who % 2 == 0, "f", "m")
    gap = abs(coverage.on(sex="f") - coverage.on(sex="m")) <= 0.4
    goal = Problem(maximize=recall, subject_to=gap, thresholds="per group")
    model = CertifiedThreshold(LogisticRegression(), goal=goal, random_state=0)
    model.fit(x, y, groups={"sex": sex}, clusters=who)
    assert model.certificate_.clusters == 120  # half of a fifth of 1,200


def test_several_classes_with_clusters_count_one_row_each():
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(600), 5)
    y = random.integers(0, 3, 600)[who]
    x = random.normal(size=(3000, 2)) + np.array([[0, 0], [4, 0], [0, 4]])[y]
    goal = "maximize accuracy subject to recall of 0 >= 0.5"
    model = Classifier(goal, model="linear", epochs=2, random_state=0).fit(
        x, y, clusters=who, order=np.arange(3000)
    )
    assert model.certificate_.examples == len(set(who[model.splits_["calibration"]]))
    assert "one of each of" in model.certificate_.notes[-1]


# metadata routing


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def _asked(**what):
    return CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=0).set_fit_request(
        **what
    )


def test_clusters_reach_the_estimator_inside_a_pipeline_and_a_search(routing):
    x, y, who = customers()
    time = np.arange(len(y))
    pipe = make_pipeline(StandardScaler(), _asked(clusters=True, order=True))
    pipe.fit(x, y, clusters=who)
    assert pipe[-1].certificate_.clusters == 160
    pipe.fit(x, y, order=time)
    assert pipe[-1].certificate_.period[1] == str(len(y) - 1)
    grid = {"certifiedthreshold__estimator__C": [0.1, 1.0]}
    search = GridSearchCV(pipe, grid, cv=GroupKFold(3), error_score="raise")
    search.fit(x, y, clusters=who, groups=who)
    assert search.best_estimator_[-1].certificate_.clusters == 160
    own = Classifier(GOAL, model="linear", epochs=1, random_state=0).set_fit_request(
        clusters=True, groups=False
    )
    search = GridSearchCV(own, {"model": ["linear"]}, cv=GroupKFold(2), error_score="raise")
    search.fit(x, y, clusters=who, groups=who)
    assert search.best_estimator_.certificate_.clusters == 160


def test_what_the_classifier_inside_asked_for_is_routed_to_it(routing):
    x, y, who = customers()
    weights = np.linspace(0.5, 2, len(y))
    inside = LogisticRegression().set_fit_request(sample_weight=True)
    model = CertifiedThreshold(inside, goal=GOAL, random_state=0)
    model.fit(x, y, clusters=who, sample_weight=weights)
    rows = model.splits_["train"]
    alone = LogisticRegression().fit(x[rows], y[rows], sample_weight=weights[rows])
    np.testing.assert_array_equal(model.estimator_.coef_, alone.coef_)
    with pytest.raises(TypeError, match="offset"):
        model.fit(x, y, offset=weights)
    found = cross_validate(
        model.set_fit_request(clusters=True),
        x,
        y,
        params={"sample_weight": weights, "clusters": who},
        error_score="raise",
        scoring=make_scorer(accuracy_score).set_score_request(sample_weight=False),
        return_estimator=True,
        cv=KFold(2, shuffle=True, random_state=0),
    )
    assert all(one.certificate_.clusters for one in found["estimator"])


def test_without_routing_names_of_steps_do():
    x, y, who = customers()
    pipe = Pipeline([("scale", StandardScaler()), ("model", models()[0])])
    pipe.fit(x, y, model__clusters=who)
    assert pipe[-1].certificate_.clusters == 160
    search = GridSearchCV(pipe, {"model__estimator__C": [1.0]}, cv=2, error_score="raise")
    search.fit(x, y, model__clusters=who)
    assert search.best_estimator_[-1].certificate_.clusters == 160


@pytest.mark.parametrize("routed", [False, True])
def test_a_search_inside_keeps_clusters_whole_if_its_splitter_does(routed):
    x, y, who = customers(300)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=routed):
        model = CertifiedThreshold(search, goal=GOAL, random_state=0).fit(x, y, clusters=who)
        rows = model.splits_["train"]
        alone = search.fit(x[rows], y[rows], groups=who[rows])
    kept = "split0_test_score"
    np.testing.assert_array_equal(model.estimator_.cv_results_[kept], alone.cv_results_[kept])


# copies and tries


def test_copies_across_parts_are_told():
    x, y = draw_array(2000, gap=2.0, features=3)
    twice = np.r_[np.arange(2000), np.arange(50)]
    for model in models():
        with pytest.warns(
            CopiedRowsWarning, match=r"rows to certify on are copies.*row \d+ of row"
        ):
            model.fit(x[twice], y[twice])
        model.fit(x[twice], y[twice], clusters=twice)  # kept together: no warning
    train, certified = (model.splits_[name] for name in ("train", "calibration"))
    assert not set(twice[train]) & set(twice[certified])


def test_a_copy_is_named_by_its_rows():
    x, y = draw_array(1000, gap=2.0, features=3)
    x[900] = x[100]
    model = models(cv=[(np.arange(800), np.arange(800, 1000))])[0]
    with pytest.warns(CopiedRowsWarning, match=r"^1 of 200 .*\(row 900 of row 100, say\)"):
        model.fit(x, y)


def test_equal_rows_of_few_values_are_no_copies(recwarn):
    x, y = draw_array(2000, gap=2.0, features=4)
    models()[0].fit(x.round(), y)
    assert not recwarn.list


def test_digests_of_all_kinds_of_rows():
    pandas = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    frame = pandas.DataFrame({"a": ["x", None, "x", None], "b": [1, 2, 1, 3]})
    kinds = [
        frame,
        sparse.csr_matrix([[0, 1.5], [2, 0], [0, 1.5], [0, 2]]),
        [["a", 1], ["b", 1], ["a", 1], ["a", 2]],
        ["some text", "other", "some text", "more"],
        [[1], [1, 2], [1], [2]],
        np.arange(4)[[0, 1, 0, 2]] + 2**60,
        np.array([[[0.0, -0.0]], [[1, 0]], [[0, 0]], [[0, 1]]]),
    ]
    for rows in kinds:
        first, second, third, fourth = row_digests(rows)
        assert first == third
        assert len({first, second, fourth}) == 3
    assert row_digests(["other"])[0] == 12478316369309857812  # in every process


def test_certificates_of_classes_are_counted_too():
    goal = "maximize accuracy subject to recall of 1 >= 0.5"
    x, y = draw_array(600, seed=78, gap=3.0, features=3)
    told = []
    for seed in (0, 1):
        model = CertifiedThreshold(LogisticRegression(), goal=goal, random_state=seed)
        told.append(" ".join(model.fit(x, y).certificate_.notes))
    assert "number 2 of the certificates on this table" in told[1]
    assert model.certificate_.fingerprint


def test_tries_on_one_table_are_counted():
    x, y = draw_array(2000, seed=77, gap=2.0, features=3)
    found = [
        CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=seed).fit(x, y)
        for seed in (0, 1, 2, 2)
    ]
    marks = {model.certificate_.fingerprint for model in found}
    assert len(marks) == 1
    told = [" ".join(model.certificate_.notes) for model in found]
    assert "certificates on this table" not in told[0]
    assert "number 3 of the certificates on this table" in told[2]
    assert told[3] == told[2]  # the same again is no further try
    model = CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=5, candidates=4)
    model.fit(x, y)
    assert model.certificate_.candidates == 4
    assert "this table" not in " ".join(model.certificate_.notes)
    other = CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=1).fit(x + 1, y)
    assert other.certificate_.fingerprint not in marks


def test_years_are_too_coarse_to_train_choose_and_certify_by():
    x, y, _ = customers(200)
    year = 2023 + (np.arange(len(y)) > len(y) // 2)
    with pytest.raises(ValueError, match=r"Too few different times.*dates, not years"):
        Classifier(GOAL, model="linear", epochs=1, random_state=0).fit(x, y, order=year)
    with pytest.raises(ValueError, match=r"have one time, 2024.*dates, not years"):
        models()[0].fit(x, y, order=year)


def test_the_parts_of_whole_customers_have_the_sizes_that_were_asked_for():
    who = np.repeat(np.arange(1000), 2)
    labels = np.tile([0, 1], 1000)
    related = Related.read(who, None, labels)
    found = three_parts(labels, 0.2, 0.3, np.random.RandomState(0), 1, related)
    assert [len(found[name]) for name in ("train", "validation", "calibration")] == [1000, 400, 600]
