from importlib.resources import files

import numpy as np
import pytest

from setpoint.datasets import letter
from setpoint.datasets.letter import ALPHABET


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
