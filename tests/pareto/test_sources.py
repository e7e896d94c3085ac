import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from setpoint.pareto.job import TensorRows, read_losses, source_of

X, Y = torch.arange(10.0)[:, None], torch.arange(10)


def test_tensors_are_given_whole_or_in_batches():
    (whole,) = source_of((X, Y), None).draw(1, seed=0)
    assert whole[0] is X
    drawn = list(source_of((X, Y), 4).draw(5, seed=3))
    assert [len(batch[0]) for batch in drawn] == [4] * 5
    assert all((batch[0][:, 0] == batch[1]).all() for batch in drawn)
    again = list(source_of((X, Y), 4).draw(5, seed=3))
    assert all((a[1] == b[1]).all() for a, b in zip(drawn, again, strict=True))


def test_one_tensor_is_a_batch_of_one():
    ((only,),) = source_of(X, None).draw(1, seed=0)
    assert only is X


def test_a_loader_begins_again_when_it_ends():
    loader = DataLoader(TensorDataset(X, Y), batch_size=4)
    source = source_of(loader, None)
    assert [len(batch[1]) for batch in source.draw(5, seed=0)] == [4, 4, 2, 4, 4]
    assert [weight for _, weight in source.everything()] == [4, 4, 2]


def test_batches_that_are_dicts_count_by_their_rows_and_not_by_their_columns():
    named = [{"x": X[:4], "y": Y[:4], "z": Y[:4]}, {"x": X[4:], "y": Y[4:], "z": Y[4:]}]
    found = list(source_of(named, None).everything())
    assert [weight for _, weight in found] == [4, 6]
    assert found[1][0] == (named[1],)


def test_what_is_in_the_data_is_in_its_description():
    other = Y.clone()
    other[3] = 7
    assert source_of((X, Y), None).describe() == source_of((X.clone(), Y.clone()), 10).describe()
    assert source_of((X, Y), None).describe() != source_of((X, Y), 4).describe()
    assert source_of((X, Y), None).describe() != source_of((X, other), None).describe()


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        ((X, Y[:9]), None, r"as many rows each; got \[10, 9\]"),
        ((X[:0], Y[:0]), None, r"as many rows each; got \[0, 0\]"),
        (iter([X]), None, "iterable that can be read again and again.*got list_iterator"),
        (3, None, "data must be tensors.*got int"),
        (None, 32, "batch_size=32 needs data as tensors"),
        ((X, Y), 0, "batch_size must be a whole number of at least 1; got 0"),
    ],
)
def test_bad_data_are_told(data, size, message):
    with pytest.raises((ValueError, TypeError), match=message):
        source_of(data, size)


def test_an_empty_loader_is_told():
    with pytest.raises(ValueError, match="data gave no batch"):
        list(source_of([], None).draw(1, seed=0))


def test_losses_have_names_or_get_them():
    f, g = torch.tensor(1.0), torch.tensor([2.0])
    names, losses = read_losses({"unfairness": f, "loss": g})
    assert names == ("unfairness", "loss")
    assert [loss.shape for loss in losses] == [(), ()]
    assert read_losses((f, g))[0] == ("minimized", "held")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (torch.tensor(1.0), "two losses.*got a torch.float32 tensor of shape"),
        ((torch.tensor(1.0),), "two losses.*got a tuple of 1"),
        (
            {"a": X, "b": X},
            r"'a' must be a scalar tensor; got a torch.float32 tensor of shape \(10, 1\)",
        ),
        ((torch.tensor(1.0), 2.0), "'held' must be a scalar tensor; got a float"),
        (
            (torch.tensor(1.0), torch.tensor(True)),
            "'held' must be a scalar tensor; got a torch.bool",
        ),
    ],
)
def test_bad_losses_are_told(found, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_losses(found)


def test_a_number_is_no_table_and_a_batch_may_be_one_tensor():
    assert not isinstance(source_of((torch.tensor(3.0),), None), TensorRows)
    assert [weight for _, weight in source_of([(X[:4],), (X[4:],)], None).everything()] == [4, 6]
