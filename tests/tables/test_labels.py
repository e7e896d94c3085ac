"""Labels of several classes are called as the file writes them."""

import pytest

from setpoint.tables import TableError, open_table
from setpoint.tables.labels import MOST_CLASSES, LabelCount


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
