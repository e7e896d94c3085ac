import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.runs import Manifest, RunError, read_manifest
from setpoint.runs.folder import _digest, digested_files
from setpoint.tables.features import Category, Encoder, Number

COLUMNS = (Number("x", 1.5, 2.0, True), Category("<script>", ("a", "ü", None)))


def example():
    return Manifest(
        goal="maximize recall subject to fpr <= 0.01",
        label="y",
        negative="no",
        positive="</script>",
        method="implicit",
        model="mlp",
        hidden=64,
        seed=0,
        created="2026-11-16T00:00:00+00:00",
        encoder=Encoder(COLUMNS),
        versions={"torch": "2"},
        notes=("a note",),
        files=dict.fromkeys(digested_files("linear"), "sha256:0"),
    )


@pytest.fixture
def manifest():
    return example()


def rewrite(folder, change):
    """Change run.json and put a fitting digest on it, as an attacker would."""
    content = json.loads((folder / "run.json").read_text())
    del content["digest"]
    change(content)
    content["digest"] = _digest(content)
    (folder / "run.json").write_text(json.dumps(content))


def outcome(folder):
    try:
        read_manifest(folder)
    except RunError as error:
        return str(error)
    return "read"


def test_reads_back(tmp_path, manifest):
    (tmp_path / "run.json").write_bytes(manifest.to_bytes())
    assert read_manifest(tmp_path) == manifest


def test_an_edit_is_noticed(tmp_path, manifest):
    text = manifest.to_bytes().decode()
    (tmp_path / "run.json").write_text(text.replace("<= 0.01", "<= 0.5"))
    with pytest.raises(RunError, match=r"run.json was changed after it was written"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("goal", "make it good", "Cannot read|starts with"),
        ("goal", 3, "goal must be a text"),
        ("goal", "maximize tpr over fpr in [0, 0.5] with 1000000000 thresholds", "1,000,000,000"),
        ("goal", "x" * 200_000, "goal has 200,000 characters"),
        ("model", "__import__('os')", "model must be one of linear, mlp"),
        ("hidden", -1, "hidden must be a whole number"),
        ("hidden", 10**12, "hidden must be a whole number"),
        ("hidden", True, "hidden must be a whole number"),
        ("seed", 1.5, "seed must be a whole number"),
        ("columns", [], "columns must be a list"),
        ("columns", "x", "columns must be a list"),
        ("files", {"../../etc/passwd": "sha256:0"}, "files must be certificate.json"),
        ("files", {}, "files must be"),
        ("notes", [1], "notes must be texts"),
        ("group", 1, "group must be a column"),
        ("versions", [], "versions must be texts by name"),
    ],
)
def test_a_forged_field_is_refused_though_the_digest_fits(
    tmp_path, manifest, field, value, message
):
    (tmp_path / "run.json").write_bytes(manifest.to_bytes())
    rewrite(tmp_path, lambda content: content.update({field: value}))
    with pytest.raises(RunError, match=message) as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


def test_a_missing_field(tmp_path, manifest):
    (tmp_path / "run.json").write_bytes(manifest.to_bytes())
    rewrite(tmp_path, lambda content: content.pop("label"))
    with pytest.raises(RunError, match="label is missing"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", '{"format": NaN}', "[" * 100_000, '{"format": "setpoint run 9"}'],
)
def test_what_is_no_run_json(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=r"run.json is not"):
        read_manifest(tmp_path)


def test_no_folder(tmp_path):
    with pytest.raises(RunError, match="does not exist; name a folder that `setpoint train` wrote"):
        read_manifest(tmp_path / "gone")
    with pytest.raises(RunError, match=r"run.json is missing"):
        read_manifest(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_forged_field_gives_a_manifest_or_one_line(tmp_path, manifest, data):
    (tmp_path / "run.json").write_bytes(manifest.to_bytes())
    content = json.loads(manifest.to_bytes())
    field = data.draw(st.sampled_from(sorted(content)))
    value = data.draw(JSON)
    rewrite(tmp_path, lambda content: content.update({field: value}))
    assert len(outcome(tmp_path).splitlines()) == 1
