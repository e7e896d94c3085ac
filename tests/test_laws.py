"""Every solver, on every axis, obeys the laws that ``subjects.py`` lists for it."""

import laws
import pytest
from subjects import SUBJECTS

LAWS = {
    "shift": laws.shift,
    "shift of the value": laws.shift_of_the_value,
    "scale": laws.scale,
    "order": laws.order,
    "copies": laws.copies,
    "absent": laws.absent,
    "scale of weights": laws.scale_of_weights,
    "outputs": laws.outputs,
    "choice, shuffled": laws.choice_of_shuffled,
    "choice, copied": laws.choice_of_copied,
    "choice, moved": laws.choice_of_moved,
    "direction": laws.direction,
    "differences": laws.differences,
    "closed form": laws.closed_form,
    "own differences": laws.own_differences,
    "resume": laws.resume,
}
CASES = [
    pytest.param(LAWS[law], subject, id=f"{law}: {name}")
    for law in LAWS
    for name, subject in SUBJECTS.items()
    if law in subject.laws
]


@pytest.mark.parametrize(("law", "subject"), CASES)
def test_law(law, subject):
    law(subject)


def test_every_subject_obeys_some_law_that_is_known():
    known = {*LAWS, "ranks"}
    assert all(subject.laws and subject.laws <= known for subject in SUBJECTS.values())
