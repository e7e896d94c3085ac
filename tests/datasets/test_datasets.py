from importlib.resources import files

import numpy as np
import pytest

from setpoint.datasets import ALPHABET, Table, letter, split


def test_the_first_row_is_that_of_the_source():
    # T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8: the first line of letter-recognition.data
    x, y = letter(positive="T")
    assert x[0].tolist() == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]
    assert y[0] == 1


def test_u_is_the_most_frequent_letter_and_the_default():
    counts = {name: int(letter(name).y.sum()) for name in ALPHABET}
    assert sum(counts.values()) == 20_000
    assert max(counts, key=counts.__getitem__) == "U"
    assert counts["U"] == int(letter().y.sum()) == 813


def test_shapes_and_types():
    x, y = letter()
    assert x.shape == (20_000, 16)
    assert y.shape == (20_000,)
    assert x.dtype == np.float32
    assert y.dtype == np.int64
    assert (x.min(), x.max()) == (0, 15)


@pytest.mark.parametrize("wrong", ["u", "UV", "", 20, "Ä"])
def test_another_positive_class_is_refused(wrong):
    with pytest.raises(ValueError, match="capital letter from A to Z"):
        letter(positive=wrong)


def test_the_data_are_small_and_carry_their_licence():
    folder = files("setpoint.datasets")
    assert len(folder.joinpath("letter.npz").read_bytes()) < 300_000
    text = folder.joinpath("letter.txt").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "Slate" in text


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
