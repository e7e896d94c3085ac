"""Attacks on tables: files in any format, dialect and spelling; damaged files; odd columns.

Oracles: what was written is read, to the digit, or refused, or a note says what was guessed;
`decide` passes every cell on; a damaged file gives an answer or one line, in bounded time and
memory, and nothing is written where nothing was decided.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import gzip
import io
import json
import resource
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from attacks.refusals import LONGEST, Refused, attempt
from pyarrow import feather, parquet

from setpoint import certify, cli
from setpoint.tables import TableError, open_table, read_scores
from setpoint.tables.values import MISSING

MOST_MEMORY = 1.5 * 2**30
"""Bytes that reading a file of kilobytes may add to those of this process."""


# ---- files as people write them --------------------------------------------------------------
class Written(NamedTuple):
    """What a file says."""

    scores: list[float]
    labels: list[int | None]
    ids: list[str]
    positive: str | None
    columns: dict[str, list[str]]


def _comma(text: str) -> str:
    return text.translate(str.maketrans(".,", ",."))


NUMBERS: dict[str, Callable[[float, int], str]] = {
    "python's": lambda v, d: repr(v),
    "fixed": lambda v, d: f"{v:.{d}f}",
    "scientific": lambda v, d: f"{v:.{d + 1}e}",
    "comma": lambda v, d: _comma(f"{v:.{d}f}"),
    "per cent": lambda v, d: f"{v:.{d}f}%",
    "per cent, comma": lambda v, d: _comma(f"{v:.{d}f}") + " %",
    "dollars": lambda v, d: f"${v:,.2f}".replace("$-", "-$"),
    "euros": lambda v, d: _comma(f"{v:,.2f}") + " €",
    "thousands": lambda v, d: f"{v:,.2f}",
    "thousands, comma": lambda v, d: _comma(f"{v:,.2f}"),
    "spaces": lambda v, d: f"{v:,.2f}".replace(",", " "),
    "Swiss": lambda v, d: f"{v:,.2f}".replace(",", "'"),
    "padded": lambda v, d: f"  {v:.{d}f} ",
    "with a sign": lambda v, d: f"{v:+.{d}f}",
}
LABELS = [("0", "1"), ("no", "yes"), ("False", "True"), ("0.0", "1.0"), ("-1", "1"), ("ok", "bad")]
IDS = ["{}", "00{}", "18000000000000000{:02d}", " {} ", 'q"{}', "a,{};b", "é{}", "l\n{}", "{}e5"]
FAMILIES: list[Callable[[Random], float]] = [
    lambda r: r.random(),
    lambda r: r.gauss(0, 3),
    lambda r: r.expovariate(1 / 5000),
    lambda r: float(r.randrange(10)),
]


def sheet(random: Random, numbers: str | None = None) -> Written:
    """Some rows: scores in one spelling, labels with gaps, identifiers."""
    family, digits = random.choice(FAMILIES), random.randrange(1, 5)
    spell = NUMBERS[numbers or random.choice(sorted(NUMBERS))]
    names, identify = random.choice(LABELS), random.choice(IDS)
    rows = random.choice([2, 5, 40])
    texts = [spell(family(random), digits) for _ in range(rows)]
    labels: list[int | None] = [random.randrange(2) for _ in range(rows)]
    labels[:2] = 0, 1
    for place in range(2, rows):
        labels[place] = None if random.random() < 0.2 else labels[place]
    ids = [identify.format(i) for i in range(rows)]
    gap = random.choice(sorted(MISSING))
    columns = {
        "s": texts,
        "y": [gap if v is None else names[v] for v in labels],
        "id": ids,
        "note": [random.choice(["NA", "", "x", "0,5", "'", "\u2028", "\x0b"]) for _ in range(rows)],
    }
    plain = [_plain(text) for text in texts]
    return Written(plain, labels, ids, "bad" if "bad" in names else None, columns)


def _plain(text: str) -> float:
    """The number that a person reads in a text of :data:`NUMBERS`."""
    core = text.strip().replace(" ", "").replace("'", "").strip("$€").replace("-$", "-")
    share, core = core.endswith("%"), core.rstrip("%")
    if "," in core and core.rfind(",") > core.rfind("."):
        core = _comma(core)
    value = float(core.replace(",", ""))
    return value / 100 if share else value


def as_csv(random: Random, columns: dict[str, list[str]]) -> bytes:
    """A csv file in some dialect."""
    text = io.StringIO(newline="")
    how: dict[str, Any] = {
        "delimiter": random.choice(",;\t|"),
        "lineterminator": random.choice(["\n", "\r\n", "\r"]),
        "quoting": random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    }
    if how["lineterminator"] == "\r":  # Python does not quote a line feed then
        how["quoting"] = csv.QUOTE_ALL
    writer = csv.writer(text, **how)
    names = random.sample(list(columns), len(columns))
    writer.writerow(names)
    writer.writerows(zip(*(columns[name] for name in names), strict=True))
    content = text.getvalue() + how["lineterminator"] * random.choice([0, 0, 1, 3])
    encoding = random.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])
    try:
        return content.encode(encoding)
    except UnicodeEncodeError:
        return content.encode()


def as_arrow(random: Random, table: pa.Table) -> tuple[str, bytes]:
    """A parquet or a feather file in some layout, with its ending."""
    sink = pa.BufferOutputStream()
    step = random.choice([1, 3, 1000])
    if random.random() < 0.5:
        codec = random.choice(["none", "snappy", "zstd", "gzip"])
        version = random.choice(["1.0", "2.0"])
        dictionary = random.random() < 0.5
        how = {"compression": codec, "use_dictionary": dictionary, "data_page_version": version}
        parquet.write_table(table, sink, row_group_size=step, **how)
        return random.choice([".parquet", ".pq", ""]), sink.getvalue().to_pybytes()
    codec = random.choice(["uncompressed", "lz4", "zstd"])
    feather.write_feather(table, sink, compression=codec, chunksize=step)
    return random.choice([".feather", ".arrow", ""]), sink.getvalue().to_pybytes()


def packed(random: Random, content: bytes) -> tuple[str, bytes]:
    """A csv file as it is, or compressed, with its ending."""
    kind = random.choice([".csv", ".txt", "", ".csv.gz", ".csv.zst"])
    if kind.endswith("gz"):
        return kind, gzip.compress(content)
    return kind, pa.compress(content, "zstd", asbytes=True) if kind.endswith("zst") else content


def any_file(random: Random, said: Written) -> tuple[str, bytes]:
    """The ending and the bytes of a file that says this."""
    if random.random() < 0.6:
        return packed(random, as_csv(random, said.columns))
    numeric = random.random() < 0.5
    columns: dict[str, Any] = dict(said.columns)
    if numeric:
        columns |= {"s": pa.array(said.scores), "y": pa.array(said.labels, pa.int8())}
    return as_arrow(random, pa.table(columns))


def formats(random: Random) -> None:
    """What a person reads in a file is what we read, or it is refused, or a note tells."""
    said = sheet(random)
    with tempfile.TemporaryDirectory() as folder:
        ending, content = any_file(random, said)
        path = Path(folder) / f"t{ending}"
        path.write_bytes(content)
        found = attempt(
            lambda: read_scores(open_table(path), "s", "y", positive=said.positive, ids="id")
        )
    if isinstance(found, Refused):
        unclear = "--decimal" in found or "--positive" in found
        kept = (
            content[:4] in (b"PAR1", b"ARRO") and "two different values" in found
        )  # "NA" is a text
        assert unclear or kept, (found, said.columns)
        return
    assert found.ids.tolist() == said.ids, (found.ids, said.ids)
    labels = [None if np.isnan(v) else int(v) for v in found.labels]
    known = labels in (said.labels, [None if v is None else 1 - v for v in said.labels])
    assert labels == said.labels or (known and said.positive is None), (labels, said.labels)
    told = any("--decimal" in note for note in found.notes)
    same = np.allclose(found.scores, said.scores, rtol=1e-12, atol=0)
    assert same or told, (found.scores, said.columns["s"], found.notes)


# ---- commands on damaged files ---------------------------------------------------------------
@cache
def certificate() -> str:
    """A certificate to decide with."""
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.3
    return certify(rng.normal(size=400) + 2 * labels, labels, "fpr <= 0.2").to_json()


COMMANDS = {
    "certify": ("certify", "{}", "--score", "s", "--label", "y", "--goal", "fpr <= 0.2"),
    "by id": (
        *("certify", "{}", "--score", "s", "--label", "y", "--goal", "recall >= 0.5"),
        *("--clusters", "id"),
    ),
    "by group": (
        *("certify", "{}", "--score", "s", "--label", "y", "--group", "note"),
        *("--goal", "fpr <= 0.2 with thresholds per group"),
    ),
    "in time": (
        *("certify", "{}", "--score", "s", "--label", "y", "--time", "note"),
        *("--goal", "fpr <= 0.2"),
    ),
    "decide": ("decide", "{}", "--score", "s", "--certificate", "c.json"),
    "plan": ("plan", "{}", "--score", "s", "--goal", "fpr <= 0.2", "--budget", "20"),
}
"""Each with ``--out``; they are run in a folder where ``{}`` is the file."""


def run(words: list[str]) -> tuple[int, str]:
    """The exit code of a command and what it says on standard error."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(words)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return code, errors.getvalue()


def spoilt(random: Random, content: bytes) -> bytes:
    """Bytes changed, cut, doubled, put in, set to zero."""
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(len(content) + 1)
        until = min(len(content), at + random.choice([1, 4, 100, 10_000]))
        middle = content[at:until]
        new = random.choice(
            [
                bytes(random.randrange(256) for _ in middle[:4]) + middle[4:],
                b"",
                middle * random.choice([2, 50]),
                b"\0" * len(middle),
                random.choice(PIECES),
            ]
        )
        content = content[:at] + new + (b"" if random.random() < 0.1 else content[until:])
    return content


PIECES = [
    *(b'"', b"\0", b"\r", b"\n\n\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b"PAR1", b"ARROW1"),
    *(b"\x28\xb5\x2f\xfd", b",,,", b"sep=,\n", b"1e999", b"-inf", b"nan", b"1" * 5000, b"\xff" * 8),
    *(b"\x7f\xff\xff\xff", b"{", b"\xed\xa0\x80", b"\xc2\xa0", b"\xe2\x80\xa8", b"0x1p-1074", b"_"),
]


def damaged(random: Random) -> None:
    """A damaged file gives an answer or one line; what is decided keeps its cells."""
    said = sheet(random)
    ending, content = any_file(random, said)
    content = spoilt(random, content)
    asked(random, ending, content)


def asked(random: Random, ending: str, content: bytes) -> None:
    """Ask a command about a file, and check what it says and writes."""
    name = random.choice(sorted(COMMANDS))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        path, out = work / f"t{ending}", work / f"out{ending}"
        path.write_bytes(content)
        (work / "c.json").write_text(certificate())
        given = {"{}": str(path), "c.json": str(work / "c.json")}
        words = [given.get(word, word) for word in COMMANDS[name]]
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code, said = attempt(lambda: run([*words, "--out", str(out)]), seconds=10)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most
        told = (name, code, said[-2 * LONGEST :])
        assert grown * 1024 < MOST_MEMORY, (told, grown)
        assert code in (0, 1, 2), told
        assert "Traceback" not in said, told
        assert "a mistake of ours" not in said, told
        last = said.strip().splitlines()[-1:] or [""]
        assert code != 2 or "error: " in last[0], told
        assert len(last[0]) <= LONGEST + 100, told
        expected = {path.name, "c.json"}
        expected |= set() if code == 2 else {out.name, f"{out.name}.plan.json"}
        left = {one.name for one in work.iterdir()}
        assert left <= expected, (told, left)
        assert path.read_bytes() == content
        if code == 0 and name == "decide":
            assert passed(out) == passed(path, every=True), told


def passed(path: Path, every: bool = False) -> Any:
    """The rows of a file without its last column, or with every one, by libraries alone."""
    try:
        source = open_table(path)
    except TableError as error:
        raise AssertionError(f"what was written cannot be read: {error}") from error
    if hasattr(source, "schema"):
        with source._opener() if hasattr(source, "_opener") else source._files[0][1]() as file:
            table = feather.read_table(file) if source.feather else parquet.read_table(file)
        kept = table.select(table.column_names[: None if every else -1])
        return [kept.schema, *(c.combine_chunks().to_string(window=100) for c in kept.columns)]
    with source._text() as text:
        for _ in range(source._lead):
            text.readline()
        lines = [line for line in csv.reader(text, delimiter=source.delimiter) if line]
    return str(lines if every else [line[:-1] for line in lines])


# ---- odd columns -----------------------------------------------------------------------------
DAY = datetime.datetime(2026, 1, 1)
KINDS: list[tuple[pa.DataType, Callable[[Random], Any]]] = [
    (pa.float16(), lambda r: np.float16(r.random())),
    (pa.float32(), lambda r: r.random()),
    (pa.float64(), lambda r: r.choice([r.random(), float("nan"), float("inf"), 5e-324, -0.0])),
    (pa.int8(), lambda r: r.randrange(-3, 3)),
    (pa.uint64(), lambda r: 2**63 + r.randrange(3)),
    (pa.int64(), lambda r: r.choice([0, 1, -(2**63), 2**63 - 1, 2**53 + 1])),
    (pa.bool_(), lambda r: r.random() < 0.5),
    (pa.null(), lambda r: None),
    (pa.decimal128(5, 2), lambda r: decimal.Decimal(r.randrange(999)).scaleb(-2)),
    (pa.decimal256(70, 30), lambda r: decimal.Decimal(r.randrange(10**40)).scaleb(-30)),
    (pa.string(), lambda r: r.choice(["0", "1", "a", "", "NA", "0.5", "é" * 300])),
    (pa.large_string(), lambda r: r.choice(["0", "1"])),
    (pa.string_view(), lambda r: r.choice(["0", "1", "a text that is longer than twelve"])),
    (pa.binary(), lambda r: b"\xff\0"),
    (pa.binary_view(), lambda r: b"\xff\0"),
    (pa.binary(3), lambda r: b"abc"),
    (pa.dictionary(pa.int8(), pa.string()), lambda r: r.choice(["0", "1"])),
    (pa.dictionary(pa.int32(), pa.int64()), lambda r: r.randrange(2)),
    (pa.dictionary(pa.int32(), pa.float64()), lambda r: float(r.randrange(2))),
    (pa.date32(), lambda r: DAY.date() + datetime.timedelta(r.randrange(900))),
    (pa.date64(), lambda r: DAY.date() + datetime.timedelta(r.randrange(900))),
    (pa.timestamp("ns"), lambda r: r.randrange(2**60)),
    (pa.timestamp("s", "Europe/Berlin"), lambda r: r.choice([0, 10**9, -(10**10), 2**40])),
    (pa.timestamp("us"), lambda r: r.choice([-(2**62), 2**62])),
    (pa.time32("s"), lambda r: r.randrange(86400)),
    (pa.duration("ms"), lambda r: r.randrange(10**6)),
    (pa.list_(pa.int64()), lambda r: [1, 2]),
    (pa.list_(pa.float32(), 2), lambda r: [0.5, 1.5]),
    (pa.struct([("s", pa.float64()), ("y", pa.int8())]), lambda r: {"s": 0.5, "y": 1}),
    (pa.map_(pa.string(), pa.int64()), lambda r: [("a", 1)]),
    (pa.month_day_nano_interval(), lambda r: (1, 2, 3)),
]
NAMES = [
    "s",
    "y",
    "id",
    "note",
    "a.b",
    "s.s",
    "",
    " ",
    "\n",
    "s ",
    "S",
    "y\0",
    "é" * 200,
    "decision",
]


def columns(random: Random) -> None:
    """Columns of any type of arrow, under any name, are used, passed on or refused in a line."""
    rows = random.choice([0, 1, 2, 30])
    names = ["s", "y", "id", "note", *random.sample(NAMES[4:], random.randrange(4))]
    arrays = []
    for name in names:
        kind, draw = random.choice(KINDS)
        if name == "s" and random.random() < 0.7:
            kind, draw = pa.float64(), lambda r: r.random()
        if name == "y" and random.random() < 0.7:
            kind, draw = pa.int8(), lambda r: r.randrange(2)
        values = [None if random.random() < 0.05 else draw(random) for _ in range(rows)]
        arrays.append(pa.array(values, kind))
    table = pa.table(arrays, names=names)
    try:
        ending, content = as_arrow(random, table)
    except (pa.ArrowException, ValueError, TypeError):  # not even pyarrow can write it
        return
    asked(random, ending, content)


ODD_CELLS = [
    *("", " ", "NA", "1", "0", "0.5", "1e999", "-inf", "inf", "nan", "1" * 400, "0x10", "1_0"),
    *("١٢", "½", "1,5", "1.5.5", "--1", "+", "-", "%", "$", "5 %", "1 000", "1'000", "\u2028", "'"),
    *('"', '""', "a\nb", "a\rb", "\x0b", "\x1c", "\x85", "=1+1", "01/02/2026", "2026-13-45", "é"),
    *("2026-01-01T00:00:00Z", "9999-12-31", "0000-00-00", "true", "TRUE", "None", "\ufeff", "\0"),
]


def cells(random: Random) -> None:
    """Csv files of cells that mean something else somewhere."""
    rows = random.choice([0, 1, 2, 5, 30])
    names = ["s", "y", "id", "note", *random.sample(NAMES[4:], random.randrange(3))]
    some = random.sample(ODD_CELLS, random.randrange(1, 4))
    usual = {"s": ["0.5", "0.25", "-1"], "y": ["0", "1"]}
    body: dict[str, list[str]] = {}
    for name in names:
        odd = random.choice([0.0, 0.0, 0.1, 1.0]) if name in usual else 1.0
        body[name] = [
            random.choice(some if random.random() < odd else usual[name]) for _ in range(rows)
        ]
    ending, content = packed(random, as_csv(random, body))
    asked(random, ending, content)


def monsters(random: Random) -> None:
    """Much in little: wide, long, deep, doubled, compressed a thousand times."""
    many = 10 ** random.randrange(1, 5)
    kind = random.randrange(7)
    if kind == 0:
        content = ",".join(["s", "y", *(f"c{i}" for i in range(many))]).encode() + b"\n"
        content += b",".join([b"1"] * (many + 2)) + b"\n"
    elif kind == 1:
        content = b"s,y\n" + b"\n" * many + b"0.5,1\n"
    elif kind == 2:
        content = b's,y\n"' + b"x" * many
    elif kind == 3:
        content = b"s,y\n0." + b"3" * many + b",1\n0.5,0\n"
    elif kind == 4:
        content = b"s,y\n" + b"0.5," + b"z" * many + b"\n0.5,0\n"
    elif kind == 5:
        content = gzip.compress(b"s,y\n" + b"0.5,1\n" * (100 * many // 10) + b"0.1,0\n")
    else:
        content = json.dumps([{"s": 0.5, "y": 1}] * many).encode()
    asked(random, random.choice([".csv", "", ".csv.gz", ".parquet"]), content)
