"""Commands that write, stopped at their file operations: some of them always, all in `slow`."""

import pytest
from attacks.crashes import COMMANDS, HOWS, stopped, undisturbed


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["certify again", "plan"])
def test_an_accident_leaves_the_old_or_the_new(name, how):
    for number in range(undisturbed(name)[1]):
        stopped(name, number, how)


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
