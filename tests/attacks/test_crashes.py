"""Commands that write, stopped at their file operations: some of them always, all in `slow`."""

from random import Random

import pytest
from attacks.crashes import COMMANDS, HOWS, stopped, undisturbed
from attacks.signals import SIGNALS, stopped_at, usual


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["certify again", "plan"])
def test_an_accident_leaves_the_old_or_the_new(name, how):
    for number in range(undisturbed(name)[1]):
        stopped(name, number, how)


def test_what_a_recalibration_spends_is_noted_with_its_certificate():
    """The certificate stood there, and the state did not know of it: its risk was spent twice."""
    count = undisturbed("recalibrate")[1]
    for number in range(count - 6, count - 3):
        stopped("recalibrate", number, "SIGKILL")


def test_train_with_force_killed_around_the_exchange_of_folders():
    """The last operations: the draft of the folder, its files, the exchange, what is removed."""
    count = undisturbed("train again")[1]
    for number in (count - 12, count - 8):
        stopped("train again", number, "SIGKILL")


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_accident_at_every_file_operation(name, how):
    for number in range(undisturbed(name)[1]):
        stopped(name, number, how)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_any_moment(number):
    """Moments spread over the life of a command, from the start of Python to its last line."""
    seconds = usual("certify")[0]
    ended = [stopped_at("certify", share * seconds, number) for share in (0.01, 0.3, 0.6, 0.9)]
    assert "stopped" in ended


@pytest.mark.slow
@pytest.mark.parametrize("name", ["certify", "train", "report", "watch", "front", "predict"])
def test_a_signal_at_sixty_moments(name):
    random = Random(name)
    for i in range(60):
        stopped_at(name, random.random() * usual(name)[0], SIGNALS[i % 2])
