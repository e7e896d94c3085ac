"""Labels of several classes are called as the file writes them."""

import pytest

from setpoint.tables import TableError, open_table, read_score_columns, read_scores
from setpoint.tables.labels import MOST_CLASSES, LabelCount, LabelNames


def read(tmp_path, labels, most=MOST_CLASSES):
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["y,x", *(f"{label},1" for label in labels)]) + "\n")
    source = open_table(path)
    count = LabelCount(source.path, "y", most)
    chunks = list(source.chunks(["y"]))
    for chunk in chunks:
        count.update(chunk)
    return chunks[0], count


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "c", "a"], ("a", "b", "c")),
        (["10", "9", "-1"], ("-1", "9", "10")),  # numbers by size
        (["02", "01", "03"], ("01", "02", "03")),
        (["1", "1.0", "2.50"], ("1", "2.50")),  # two spellings of one class
        (["10", "9", "x"], ("10", "9", "x")),
    ],
)
def test_names_are_as_written_and_in_order(tmp_path, labels, names):
    chunk, count = read(tmp_path, labels)
    several = count.all_classes()
    assert several.names == names
    numbers = several.encode(chunk, "y").tolist()
    assert [float(names[i]) if names[i][-1].isdigit() else names[i] for i in numbers] == [
        float(label) if label[-1].isdigit() else label for label in labels
    ]


def test_one_class_and_too_many_are_refused(tmp_path):
    with pytest.raises(TableError, match="two classes at least; this one has 'a'"):
        read(tmp_path, ["a", "a"])[1].all_classes()
    with pytest.raises(TableError, match="more than 1,000 different labels"):
        read(tmp_path, [f"c{i}" for i in range(1001)])
    with pytest.raises(TableError, match=r"two different values; this one has 3.*macro"):
        read(tmp_path, ["a", "b", "c"], most=20)[1].two_classes()


def test_names_of_both_classes_are_known_unless_they_are_plain_or_one_is_missing():
    assert LabelNames(("no", "yes")).both == ("no", "yes")
    for names in (("0", "1"), ("", "yes"), ("no", ""), ("a", "b", "c")):
        assert LabelNames(names).both == ()


def test_several_label_columns_have_names_if_all_are_called_alike(tmp_path):
    (tmp_path / "t.csv").write_text("s,t,y,z,w\n0,1,no,no,0\n1,0,yes,yes,1\n")
    source = open_table(tmp_path / "t.csv")
    assert read_score_columns(source, ["s", "t"], ["y", "z"]).label_names == ("no", "yes")
    assert read_score_columns(source, ["s", "t"], ["y", "w"]).label_names == ()


@pytest.mark.parametrize(("count", "told"), [(3, "For several, train"), (21, "more than 20")])
def test_too_many_labels_are_told_by_their_number(tmp_path, count, told):
    rows = "".join(f"{i},{chr(97 + i)}\n" for i in range(count))
    (tmp_path / "t.csv").write_text(f"s,y\n{rows}")
    with pytest.raises(TableError, match=told) as caught:
        read_scores(open_table(tmp_path / "t.csv"), "s", "y")
    assert ("For several" in str(caught.value)) == (count == 3)


def test_two_are_enough_for_a_column_of_classes_and_one_is_not(tmp_path):
    assert read(tmp_path, ["b", "a"])[1].all_classes().names == ("a", "b")
    with pytest.raises(TableError, match="a label column has two classes at least"):
        read(tmp_path, ["a", "a"])[1].all_classes()
