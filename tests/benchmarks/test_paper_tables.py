"""The tables of ICO's Table 5: numbers in bins, missing values in columns of their own."""

import numpy as np
import pytest

from benchmarks.common import paper_tables

ADULT = """age,fnlwgt,sex,education_num,capital_gain,capital_loss,hours_per_week,income,split
20,7,Male,8,0,0,40,<=50K,train
30,7,Male,9,2174,0,39,>50K,train
40,7,Female,11,9000,1800,41,<=50K,test
50,7,?,16,99999,1900,60,>50K,test
"""
CRIME = """state,county,community,communityname,fold,population,LemasSwornFT,ViolentCrimesPerPop
8,,,a,1,0.5,,0.1
8,,,b,1,0.6,0.3,0.2
8,,,c,1,0.7,,0.3
8,,,d,1,0.8,0.4,0.4
"""


@pytest.fixture
def written(monkeypatch, tmp_path):
    for name, text in (("adult.csv.gz", ADULT), ("communities_crime.csv.gz", CRIME)):
        (tmp_path / name.removesuffix(".gz")).write_text(text)
    monkeypatch.setattr(
        paper_tables, "path", lambda name: tmp_path / name.split("/")[1].removesuffix(".gz")
    )


def test_every_number_of_adult_is_in_one_of_its_bins(written):
    table = paper_tables.adult()
    assert table.y.tolist() == [0, 1, 0, 1]
    # quartiles of age, words of sex, bins of education and of gain, bins seen of loss and of hours
    assert table.x.shape == (4, 4 + 3 + 4 + 4 + 3 + 3)
    assert set(np.unique(table.x)) == {0.0, 1.0}
    assert table.x.sum(1).tolist() == [6.0] * 4  # one for each of six columns
    assert table.x[:, -3:].argmax(1).tolist() == [1, 0, 1, 2]  # hours: 40 and 41 are together


def test_missing_values_of_crime_are_zero_and_told(written):
    table = paper_tables.crime()
    assert table.y.tolist() == [0, 0, 0, 1]  # the 70th percentile of four is 0.31
    expected = [[0.5, 0, 1], [0.6, 0.3, 0], [0.7, 0, 1], [0.8, 0.4, 0]]
    np.testing.assert_allclose(table.x, expected, rtol=1e-6)
