import json
import math

import numpy as np
import pytest
from certificates.simulate import sample
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from setpoint.certificates import Certificate, certify
from setpoint.certificates.storage import checksum
from setpoint.rates import coverage, fpr, precision, recall

SCORES, LABELS = sample(0, 900, 0.3)
GROUPS = np.where(np.arange(900) % 2, "<b>", "'\"&\U0001f600")
FOUND = {
    "cap": certify(SCORES, LABELS, fpr <= 0.05),
    "groups": certify(SCORES, LABELS, fpr <= 0.05, groups=GROUPS),
    "infeasible": certify(SCORES, LABELS, fpr <= 1e-4),
    "all": certify(SCORES, np.arange(900) % 10 > 0, precision >= 0.8),
    "problem": certify(SCORES, LABELS, "maximize precision subject to recall >= 0.6"),
    "unlabelled": certify(SCORES, None, coverage <= 0.1),
    "mean": certify(SCORES, LABELS, recall >= 0.9, guarantee="mean"),
}
CAP = FOUND["cap"]


@pytest.mark.parametrize("name", FOUND)
def test_certificates_read_back_as_themselves(name):
    again = Certificate.from_json(FOUND[name].to_json())
    assert again == FOUND[name]
    assert str(again) == str(FOUND[name])


def test_accepting_all_is_written_as_null():
    assert FOUND["all"].threshold == -math.inf
    written = json.loads(FOUND["all"].to_json())
    assert written["points"][0]["threshold"] is None
    assert "Infinity" not in FOUND["all"].to_json()


def forged(change, name="cap"):
    """A changed certificate with a checksum that fits."""
    body = json.loads(FOUND[name].to_json())
    del body["checksum"]
    change(body)
    return json.dumps({**body, "checksum": checksum(body)})


def test_forging_without_a_change_changes_nothing():
    assert Certificate.from_json(forged(lambda body: None)) == CAP


def test_a_changed_threshold_is_noticed():
    body = json.loads(CAP.to_json())
    body["points"][0]["threshold"] += 0.1
    with pytest.raises(ValueError, match="changed after it was written"):
        Certificate.from_json(json.dumps(body))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"a"',
        "NaN",
        "[" * 100_000,
        '{"kind": 1}',
        "\x00",
        '{"version": 1}',
    ],
)
def test_other_files_are_no_certificates(text):
    with pytest.raises(ValueError, match="This is no certificate"):
        Certificate.from_json(text)


def test_bytes_are_no_text():
    with pytest.raises(TypeError, match="reads a text"):
        Certificate.from_json(b"{}")


def test_every_cut_is_noticed():
    text = CAP.to_json()
    for end in range(0, len(text), 97):
        with pytest.raises(ValueError, match=r"no certificate|changed"):
            Certificate.from_json(text[:end])


def _set(name, value):
    return lambda body: body.__setitem__(name, value)


def _point(name, value):
    return lambda body: body["points"][0].__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("version", 1), "version is 1, not 2"),
        (_set("version", True), "version is True"),
        (_set("kind", "model"), "kind is 'model'"),
        (_set("extra", 1), "extra"),
        (lambda body: body.pop("goal"), "goal"),
        (_set("status", "fine"), "status is one of"),
        (_set("confidence", 1.5), "confidence is between"),
        (_set("confidence", "0.95"), "confidence is between"),
        (_set("prevalence", 2), "prevalence is a share"),
        (_set("prevalence", ["a", "b"]), "prevalence is a share"),
        (_set("prevalence", [0.1, 0.2, 0.3]), "prevalence is a share"),
        (_set("guarantee", "sure"), "guarantee is"),
        (_set("dtype", "complex64"), "dtype is one of"),
        (_set("candidates", 0), "candidates is"),
        (_set("candidates", True), "candidates is"),
        (_set("column", 3), "column is"),
        (_set("column", "group"), "groups have names"),
        (_set("goal", "fpr <= "), "goal cannot be read"),
        (_set("goal", 5), "goal is a sentence"),
        (_set("notes", "text"), "notes is a list"),
        (_set("notes", [1]), "notes cannot hold 1"),
        (_set("points", []), "at least one point"),
        (_set("points", [{}]), "points hold group, threshold"),
        (_set("points", {}), "points is a list"),
        (_set("claims", [1]), "claims hold bound"),
        (_point("threshold", 10**400), "threshold in points cannot be 1000"),
        (_point("threshold", "high"), "threshold in points cannot be 'high'"),
        (_point("threshold", True), "threshold in points cannot be True"),
        (_point("examples", -1), "examples in points cannot be -1"),
        (_point("examples", 1.5), "examples in points cannot be 1.5"),
        (_point("alerts", 10**6), "no more alerts than examples"),
        (_set("clusters", 0), "clusters is a whole number"),
        (_set("period", ["2024"]), "period has a beginning and an end"),
        (_set("fingerprint", 1), "fingerprint is a text"),
        (_point("group", [1]), "group in points"),
        (lambda body: body["points"].append(body["points"][0]), "one threshold"),
        (_set("status", "infeasible"), "only a certified goal has a threshold"),
    ],
)
def test_forged_fields_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Certificate.from_json(forged(change))


def test_groups_must_differ():
    def twice(body):
        body["points"].append(dict(body["points"][0]))

    with pytest.raises(ValueError, match="groups are all different"):
        Certificate.from_json(forged(twice, "groups"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@examples(300)
@given(st.data())
def test_forged_certificates_are_errors_or_certificates(data):
    """Any value in any place, with a fitting checksum: a ValueError, or something that works."""

    def change(body):
        place = body
        while True:
            key = data.draw(
                st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
            )
            inner = place[key]
            if isinstance(inner, (dict, list)) and inner and data.draw(st.booleans()):
                place = inner
                continue
            place[key] = data.draw(VALUES)
            return

    name = data.draw(st.sampled_from(sorted(FOUND)))
    try:
        found = Certificate.from_json(forged(change, name))
    except ValueError:
        return
    assert isinstance(str(found), str)
    assert isinstance(found._repr_html_(), str)
    assert Certificate.from_json(found.to_json()) == found


@examples(200)
@given(st.text(max_size=40) | VALUES.map(json.dumps))
def test_any_text_is_a_clear_error(text):
    with pytest.raises(ValueError, match="no certificate"):
        Certificate.from_json(text)
