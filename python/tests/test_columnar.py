"""Parquet and Arrow files of other programs: all ways to write a table give the rows of the same table as CSV."""

import csv
import io
import subprocess

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

WORDS = ["alpha", "beta", "gamma delta", "été", "a text that is too long to be part of a view"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
LISTS = {"tags": pa.string(), "numbers": pa.int32(), "thirds": pa.float32(), "truths": pa.bool_()}
OPTIONS = {
    "id": ["id"],
    "text": ["text", "large"],
    "categorical": ["kind", "code", "flag"],
    "numeric": [*INTEGERS, "half", "single", "double"],
    "list": list(LISTS),
}


def columns(n, missing):
    """Columns with every type of value, some of them missing."""
    random = np.random.default_rng(n)

    def some(values):
        return [None if missing and random.random() < 0.3 else value for value in values]

    def integers(name):
        limits = np.iinfo(name)
        return [[limits.min, limits.max, 0, 1, row % 100][row % 5] for row in range(n)]

    words = random.choice(WORDS, (n, 3))
    number = random.normal(size=n)
    every = {
        "id": pa.array([f"r{row}" for row in range(n)], pa.string()),
        "text": pa.array(some(" ".join(row) for row in words), pa.string()),
        "large": pa.array(some(row[0] for row in words), pa.large_string()),
        "kind": pa.array(some(row[1] for row in words), pa.string()).dictionary_encode(),
        "code": pa.array(some(range(n)), pa.int32()),
        "flag": pa.array(some(row % 3 == 0 for row in range(n)), pa.bool_()),
        "half": pa.array(some(np.arange(n, dtype=np.float16) % 64 / 8 - 3.5), pa.float16()),
        "single": pa.array(some(number.astype(np.float32)), pa.float32()),
        "double": pa.array(some(number * 10.0 ** random.integers(-20, 20, n)), pa.float64()),
        "nothing": pa.nulls(n),
        "when": pa.array(some(range(n)), pa.timestamp("us")),
        "pair": pa.array(some({"a": row} for row in range(n)), pa.struct([("a", pa.int32())])),
        "nested": pa.array(some([[row], []] for row in range(n)), pa.list_(pa.list_(pa.int32()))),
    }
    every |= {name: pa.array(some(integers(name)), getattr(pa, name)()) for name in INTEGERS}
    items = {"tags": lambda k: WORDS[k], "numbers": lambda k: 3 * k - 4, "thirds": lambda k: np.float32(k / 3 + 0.5), "truths": lambda k: k == 1}
    for name, item in items.items():
        lists = [[item(k) for k in range(random.integers(0, 4))] for _ in range(n)]
        every[name] = pa.array(some(lists), pa.list_(LISTS[name]))
    # What comes last is wrong if anything before was skipped in the wrong way.
    every["last"] = pa.array([f"class{row % 2}" for row in range(n)], pa.string())
    return every


def cell(value):
    if value is None:
        return ""
    if isinstance(value, list):
        return "|".join(map(cell, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def write_csv(path, table):
    wanted = {"last", *(name for names in OPTIONS.values() for name in names)}
    used = [name for name in table.column_names if name in wanted]
    lists = {name: table[name].to_pylist() for name in used}
    for name in ["half", "single"]:
        lists[name] = [None if value is None else np.float32(value) for value in lists[name]]
    lists["thirds"] = [None if value is None else [np.float32(item) for item in value] for value in lists["thirds"]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(used)
        writer.writerows([map(cell, row) for row in zip(*(lists[name] for name in used))])


def rows_of(program, path):
    """The rows of a file with names of features."""
    out = path.with_suffix(".svm")
    options = [part for role, names in OPTIONS.items() for part in (f"--{role}", ",".join(names))]
    command = [program, "vectorize", path, *options, "--separator", "|", "--label", "last", "-o", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, (path.name, done.stderr)
    return out.read_bytes()


def parquet_files(folder, table):
    """The table as Parquet, in all ways."""
    n = table.num_rows
    for codec in ["none", "snappy", "gzip", "zstd", "lz4"]:
        for version in ["1.0", "2.0"]:
            for dictionary in [True, False]:
                path = folder / f"{codec}-{version}-{dictionary}.parquet"
                options = {"data_page_version": version, "use_dictionary": dictionary, "data_page_size": 2000}
                pq.write_table(table, path, compression=codec, row_group_size=2 * n // 3 + 1, **options)
                yield path
    texts, floats = ["id", "text", "large", "last"], ["half", "single", "double"]
    for name, encodings in {
        "delta": dict.fromkeys(INTEGERS, "DELTA_BINARY_PACKED") | dict.fromkeys(texts, "DELTA_BYTE_ARRAY") | {"flag": "RLE"},
        "split": dict.fromkeys(floats, "BYTE_STREAM_SPLIT") | dict.fromkeys(texts, "DELTA_LENGTH_BYTE_ARRAY"),
    }.items():
        for version in ["1.0", "2.0"]:
            path = folder / f"{name}-{version}.parquet"
            options = {"data_page_version": version, "use_dictionary": False, "data_page_size": 2000}
            pq.write_table(table, path, column_encoding=encodings, **options)
            yield path
    for name, options in {"plain-schema": {"store_schema": False}, "old-lists": {"use_compliant_nested_type": False}}.items():
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, **options)
        yield path


def arrow_files(folder, table):
    """The table as Arrow files and streams, in all ways."""
    n = table.num_rows
    for codec in ["uncompressed", "lz4", "zstd"]:
        path = folder / f"{codec}.feather"
        feather.write_feather(table, str(path), compression=codec, chunksize=n // 3 + 1)
        yield path
        path = folder / f"{codec}.arrows"
        options = pa.ipc.IpcWriteOptions(compression=None if codec == "uncompressed" else codec)
        with pa.ipc.new_stream(path, table.schema, options=options) as out:
            out.write_table(table, n // 3 + 1)
        yield path
    path = folder / "before-0.15.arrows"
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(path, table.schema, options=options) as out:
        out.write_table(table)
    yield path


def polars_files(folder, table):
    # polars has neither numbers of half precision nor columns of nothing in all of its versions.
    half = pa.array(table["half"].to_pylist(), pa.float32())
    table = table.set_column(table.column_names.index("half"), "half", half).drop_columns(["nothing"])
    frame = pl.from_arrow(table)
    frame.write_parquet(folder / "polars.parquet")
    frame.write_parquet(folder / "polars-pages.parquet", compression="lz4", data_page_size=2000, row_group_size=table.num_rows // 2 + 1)
    frame.write_ipc(folder / "polars.arrow")
    frame.write_ipc(folder / "polars-zstd.arrow", compression="zstd")
    arrow = [folder / name for name in ["polars.arrow", "polars-zstd.arrow"]]
    # The first releases of polars write Arrow files of some tables that they cannot read themselves.
    return [folder / "polars.parquet", folder / "polars-pages.parquet", *filter(reads_back, arrow)]


def reads_back(path):
    try:
        pl.read_ipc(io.BytesIO(path.read_bytes()))
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        assert tuple(map(int, pl.__version__.split(".")[:2])) < (1, 10)
        return False
    return True


@pytest.mark.parametrize("n, missing", [(700, True), (700, False), (9, True)])
def test_every_way_to_write_a_table_gives_the_rows_of_its_csv(program, tmp_path, n, missing):
    table = pa.table(columns(n, missing))
    write_csv(tmp_path / "table.csv", table)
    expected = rows_of(program, tmp_path / "table.csv")
    assert len(expected.splitlines()) == n
    for files in [parquet_files, arrow_files, polars_files]:
        for path in files(tmp_path, table):
            assert rows_of(program, path) == expected, path.name


def test_dictionaries_grow_and_are_replaced(program, tmp_path):
    parts = [["a", "b", "a"], ["c", "b", "c"], ["a", "d", "c"]]
    for name, grow in [("grow", True), ("replace", False)]:
        known, batches = [], []
        for part in parts:
            known = list(dict.fromkeys((known if grow else []) + part))
            codes = pa.array([known.index(value) for value in part], pa.int8())
            kinds = pa.DictionaryArray.from_arrays(codes, pa.array(known))
            batches.append(pa.record_batch({"kind": kinds, "class": pa.array(["x", "y", "x"])}))
        path = tmp_path / f"{name}.arrows"
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=grow)
        with pa.ipc.new_stream(path, batches[0].schema, options=options) as out:
            for batch in batches:
                out.write_batch(batch)
    (tmp_path / "table.csv").write_text("kind,class\n" + "".join(f"{kind},{label}\n" for part in parts for kind, label in zip(part, "xyx")))
    rows = []
    for name in ["table.csv", "grow.arrows", "replace.arrows"]:
        command = [program, "vectorize", name, "--categorical", "kind", "--label", "class", "-o", "x.svm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rows.append((tmp_path / "x.svm").read_bytes())
    assert rows[1:] == [rows[0]] * 2


def test_tables_of_results_are_read_by_others(program, tmp_path):
    (tmp_path / "x.svm").write_text("".join(f"c{row % 2} {row % 5 + 1}:1 {row % 7 + 8}:2\n" for row in range(50)))
    run = [program, "train", "x.svm", "--scale", "10", "--max-iter", "20", "-o", "m.hdsl"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    for name in ["n.csv", "n.parquet"]:
        run = [program, "neighbors", "m.hdsl", "--train", "x.svm", "x.svm", "-o", name]
        subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    said = pl.read_csv(tmp_path / "n.csv")
    for frame in [pl.from_arrow(pq.read_table(tmp_path / "n.parquet")), pl.read_parquet(tmp_path / "n.parquet")]:
        assert frame.columns == said.columns
        assert frame.rows() == said.rows()


def test_brotli_is_refused_by_name(program, tmp_path):
    pq.write_table(pa.table({"text": ["some words", "more words"] * 20}), tmp_path / "x.parquet", compression="brotli")
    done = subprocess.run([program, "inspect", "x.parquet"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Brotli" in done.stderr
