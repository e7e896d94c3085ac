import numpy as np
import pytest

from setpoint.datasets import Table, letter, split


def numbered(count: int) -> Table:
    """Rows that can be told apart after standardising: labels carry their number."""
    x = np.random.default_rng(7).normal(3.0, 5.0, (count, 2)).astype(np.float32)
    return Table(x, np.arange(count))


def test_every_example_is_in_exactly_one_part():
    parts = split(numbered(1001), seed=3)
    assert [len(part.y) for part in parts] == [500, 250, 251]
    assert sorted(np.concatenate([part.y for part in parts])) == list(range(1001))


def test_rows_keep_their_labels():
    table = numbered(200)
    for part in split(table, seed=0):
        original = table.x[part.y]
        # standardising is one affine map for all rows: differences shrink by one factor a column
        factors = (part.x[1:] - part.x[:-1]) / (original[1:] - original[:-1])
        assert np.ptp(factors, axis=0) == pytest.approx(0, abs=1e-3)


def test_the_seed_decides():
    table = numbered(100)
    first, again, other = (split(table, seed=s).train.y.tolist() for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_training_part_alone_sets_the_scale():
    train, validation, test = split(letter(), seed=0)
    assert train.x.mean(0, np.float64) == pytest.approx(0, abs=1e-6)  # float32
    assert train.x.std(0, np.float64) == pytest.approx(1, abs=1e-6)
    for part in (validation, test):
        assert abs(part.x.mean(0)).max() > 1e-4
        assert part.x.dtype == np.float32


def test_a_constant_column_becomes_zero():
    table = numbered(40)
    table.x[:, 1] = 8.0
    assert not split(table, seed=0).test.x[:, 1].any()


@pytest.mark.parametrize(("rows", "labels"), [(3, 3), (10, 9)])
def test_too_few_or_unlabelled_examples_are_refused(rows, labels):
    with pytest.raises(ValueError, match="at least 4 examples with one label each"):
        split(Table(np.zeros((rows, 1), np.float32), np.zeros(labels, np.int64)), seed=0)


def test_a_seed_is_a_whole_number():
    with pytest.raises(ValueError, match="seed must be a whole number"):
        split(numbered(10), seed=-1)
