from __future__ import annotations

import copy
import json
import pickle
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.config import Corpus, Output, Terms, load_config, parse_config, parse_identities, write_toml
from biasspark.config.toml_file import apply_overrides
from biasspark.errors import ABSENT, ConfigError
from tests.harness.least_configuration import LEAST, changed, key_of, raised_faults

WHOLE = """
[corpus]
name = "civil"
path = "s3a://lake/civil"
format = "csv"
options = { header = true, sep = ";", maxColumns = 100, samplingRatio = 0.5 }
schema = "id BIGINT, target DOUBLE"
filter = '''
lang = 'en'
'''
run_date_column = "created_date"
id = "id"
duplicates = "reject"
[label]
column = "target"
threshold = 1
range = [0, 2]
[models]
toxicity_6 = "t6"
toxicity_1 = "t1"
[identities]
columns = ["male", "female"]
threshold = 0.25
range = [0.0, 1.0]
unannotated = "background"
categorical = ["race"]
array = "groups"
predicates = { young = "age < 30", "not so young" = "age >= 30" }
terms = { column = "text", list = ["muslim", "lgbt: gay, lesbian"] }
crossed = { pairs = true, min_rows = 50 }
[slices]
"full time" = "hours >= 40"
[ranking]
engine = "windows"
ranges = 7
[intervals]
level = 0.9
[rejects]
max_rows = 5
[output]
catalog = "spark_catalog.bias"
format = "parquet"
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def fault_of(folder: Path, content: bytes | str | None) -> str:
    path = folder / "c.toml"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (message,) = caught.value.messages
    assert message.startswith(f'"{path}": ')
    return message.removeprefix(f'"{path}": ')


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    """What is written is read, options of Spark as texts, and terms by group."""
    config, written = load_config(write(tmp_path / "c.toml", WHOLE)), tomllib.loads(WHOLE)
    options = {"header": "true", "sep": ";", "maxColumns": "100", "samplingRatio": "0.5"}
    assert config.corpus.options == options
    written["corpus"]["options"] = dict.fromkeys(options, "(redacted)")
    written["identities"]["terms"]["list"] = {"muslim": ["muslim"], "lgbt": ["gay", "lesbian"]}
    written["rejects"]["allow_missing_models"] = False
    assert config.resolved() == written


class TestFile:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "no such file or directory"),
            (b'[corpus]\nname = "a\n', "(at line 2, column 10)"),
            (b'[corpus]\nname = "caf\xe9"\n', "line 2, byte 12 is not UTF-8"),
            (b"a = " + b"[" * 10_000, "must be TOML"),
            (b"a = " + b"9" * 10_000, "must be TOML"),
            (b"a = True", "in quotes"),
            (b"\0", "(at line 1, column 1)"),
            (b"= 1", "(at line 1, column 1)"),
            (b"a = { x = 1 }\na.y = 2\n", "(at line 2, column 8)"),
            (b"[label]\ncolumn = { x = 1, x = 2 }\n", "(at line 2, "),
        ],
        ids=["missing", "text", "latin 1", "deep", "digits", "True", "NUL", "no key", "inline", "inline key"],
    )
    def test_what_is_wrong_with_a_file_is_located(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        assert message in fault_of(tmp_path, content)

    @pytest.mark.parametrize(
        ("content", "key", "line"),
        [
            (b'[models]\ntox = "a"\n# the new one\ntox = "b"', "tox", 4),
            (b"[m]\nx = 1\n[n]\ny = 1\n[m]\nz = 1\n", "[m]", 5),
            (b"[m]\n[m] # [canary]\n", "[m]", 2),
        ],
        ids=["key", "table", "comment"],
    )
    def test_what_is_set_twice_is_named(self, tmp_path: Path, content: bytes, key: str, line: int) -> None:
        fault = fault_of(tmp_path, content)
        assert (key in fault, f"line {line}, " in fault, "canary" in fault) == (True, True, False), fault

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="is a directory"):
            load_config(tmp_path)

    def test_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        path = tmp_path / "c.toml"
        path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
        assert load_config(path) == load_config(write(tmp_path / "d.toml", WHOLE))


class TestOverrides:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return write(tmp_path / "c.toml", WHOLE)

    def test_values_are_toml_else_text(self, path: Path) -> None:
        config = load_config(
            path,
            [
                "corpus.name=other",
                "corpus.filter=lang = 'de' and n = 3",
                "label.threshold=0.75",
                'identities.columns=["male"]',
                'slices."full time"=hours > 40',
                "slices . 'half time' = 'hours < 20'",
                "ranking.ranges=1",
                "ranking.ranges=2",
                "rejects.max_rows=0",
            ],
        )
        assert config.corpus.name == "other"
        assert config.corpus.filter == "lang = 'de' and n = 3"
        assert config.label.threshold == 0.75
        assert config.identities.columns == ("male",)
        assert config.slices == {"full time": "hours > 40", "half time": "hours < 20"}
        assert config.ranking.ranges == 2
        assert config.rejects.max_rows == 0
        no_key = load_config(path, ['corpus.filter="a"\nb = 1'])
        assert no_key.corpus.filter == '"a"\nb = 1'

    def test_they_make_and_replace_tables(self, tmp_path: Path) -> None:
        text = '[label]\ncolumn = "y"\n[models]\na = "a"\n[identities]\ncolumns = ["b"]\n'
        overrides = ["corpus.name=c", "corpus.table=lake.c", "output={ catalog = 'lake.bias' }"]
        config = load_config(write(tmp_path / "c.toml", text), [*overrides, "identities.crossed.pairs=true"])
        assert config.corpus == Corpus(name="c", table="lake.c", duplicates="allow")
        assert config.output == Output(catalog="lake.bias")
        assert config.identities.crossed.pairs

    def test_they_are_validated_with_the_rest(self, path: Path) -> None:
        overrides = ["label.threshold", "ranking.engine=fast", "corpus.name.x=1", "a..b=1"]
        faults = raised_faults(ConfigError, load_config, path, overrides)
        assert [key_of(fault) for fault in faults] == ["", "", "", "ranking.engine"]
        assert [str(fault).partition(": ")[0] for fault in faults[:3]] == [
            '--set "label.threshold"',
            "--set corpus.name.x",
            '--set "a..b"',
        ]

    def test_a_second_rule_in_single_brackets_is_told_to_have_two(self, tmp_path: Path) -> None:
        for first, second in (("[gate.rule]", "[gate.rule]"), ("[gate.rule]", "[[gate.rule]]")):
            with pytest.raises(ConfigError, match="two brackets"):
                load_config(write(tmp_path / "c.toml", f"{first}\n{second}\n"))

    def test_an_empty_file_lacks_required_tables_only(self, tmp_path: Path) -> None:
        faults = raised_faults(ConfigError, load_config, write(tmp_path / "c.toml", ""))
        assert [key_of(fault) for fault in faults] == ["corpus", "label", "models", "output"]

    @given(text=st.text(max_size=30))
    def test_any_text_is_an_override_or_a_fault(self, text: str) -> None:
        before = copy.deepcopy(LEAST)
        _, faults = apply_overrides(LEAST, [text, "corpus." + text, text + "=1"])
        assert before == LEAST
        assert all(message.startswith("--set ") and "\n" not in message for message in map(str, faults))


class TestPaths:
    @pytest.fixture
    def folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
        conf, working = tmp_path / "conf", tmp_path / "work"
        conf.mkdir()
        working.mkdir()
        monkeypatch.chdir(working)
        return conf, working

    def located(self, path: str, base: Path) -> str | None:
        return parse_config(changed(corpus={"path": path}), base).corpus.path

    def test_beside_the_configuration_first(self, folders: tuple[Path, Path]) -> None:
        conf, working = folders
        assert self.located("data/civil", conf) == str(working / "data/civil")
        (working / "data/civil").mkdir(parents=True)
        assert self.located("data/civil", conf) == str(working / "data/civil")
        (conf / "data/civil").mkdir(parents=True)
        assert self.located("data/civil", conf) == str(conf / "data/civil")
        assert self.located("../conf/data/civil", conf) == str(conf / "data/civil")
        assert self.located("data/civil", Path("../conf")) == str(conf / "data/civil")

    def test_patterns_are_beside_it_when_something_matches(self, folders: tuple[Path, Path]) -> None:
        conf, working = folders
        assert self.located("data/*.csv", conf) == str(working / "data/*.csv")
        (conf / "data").mkdir()
        write(conf / "data/a.csv", "")
        assert self.located("data/*.csv", conf) == str(conf / "data/*.csv")

    @pytest.mark.parametrize("path", ["/data/x", "s3a://b/x", "hdfs:///x/*", "file:/x", "dbfs:/x", "/a/{b,c}/*"])
    def test_absolute_paths_and_uris_stay(self, path: str, folders: tuple[Path, Path]) -> None:
        assert self.located(path, folders[0]) == path

    def test_output_exists_beside_else_goes_to_the_working_folder(self, folders: tuple[Path, Path]) -> None:
        conf, working = folders
        table = changed(output={"path": "warehouse"})
        assert parse_config(table, conf).output.path == str(working / "warehouse")
        (conf / "warehouse").mkdir()
        assert parse_config(table, conf).output.path == str(conf / "warehouse")


class TestTerms:
    def read(self, base: Path, **terms: Any) -> Terms | None:
        return parse_config(changed(identities={"terms": {"column": "text", **terms}}), base).identities.terms

    def faults(self, base: Path, **terms: Any) -> list[tuple[str, Any]]:
        faults = raised_faults(ConfigError, partial(self.read, base, **terms))
        return [(key_of(fault).removeprefix("identities.terms."), fault.value) for fault in faults]

    def test_a_file_holds_terms_groups_and_comments(self, tmp_path: Path) -> None:
        write(tmp_path / "t.txt", "# comment\n\n  muslim \r\nafrican american\nlgbt: gay, lesbian,homosexual\n")
        expected = {
            "muslim": ("muslim",),
            "african american": ("african american",),
            "lgbt": ("gay", "lesbian", "homosexual"),
        }
        assert self.read(tmp_path, file="t.txt") == Terms(column="text", list=expected)

    def test_a_list_holds_lines_or_groups_by_name(self, tmp_path: Path) -> None:
        terms = Terms(column="text", list={"#metoo": ("#metoo",), "g": ("a", "b")})
        assert self.read(tmp_path, list=["#metoo", "g: a, b"]) == terms
        assert self.read(tmp_path, list={"#metoo": ["#metoo"], "g": ["a", "b"]}) == terms

    @pytest.mark.parametrize(
        "content", [None, b"\n# nothing\n", b"one\ncaf\xe9\n"], ids=["missing", "empty", "latin 1"]
    )
    def test_a_file_that_has_no_terms(self, tmp_path: Path, content: bytes | None) -> None:
        if content is not None:
            (tmp_path / "t.txt").write_bytes(content)
        assert self.faults(tmp_path, file="t.txt") == [("file", "t.txt")]

    def test_faulty_lines_and_a_file_that_is_not_local(self, tmp_path: Path) -> None:
        write(tmp_path / "t.txt", "one\ng: a,, b\n: c\na\tb\none\n")
        of_lines = [("file.2", ""), ("file.3", ""), ("file.4", "a\tb"), ("file.5", "one")]
        assert self.faults(tmp_path, file="t.txt") == of_lines
        assert self.faults(tmp_path, file="s3a://b/t.txt") == [("file", "s3a://b/t.txt")]

    def test_both_neither_and_no_column(self, tmp_path: Path) -> None:
        faults = raised_faults(ConfigError, parse_identities, {"terms": {}})
        assert [key_of(fault) for fault in faults] == ["identities.terms.column", "identities.terms"]
        write(tmp_path / "t.txt", "one")
        assert self.faults(tmp_path, file="t.txt", list=["two"]) == [("identities.terms", ABSENT)]

    @pytest.mark.parametrize(
        ("terms", "fault"),
        [
            ([], ("list", [])),
            ({}, ("list", {})),
            ("one", ("list", "one")),
            (3, ("list", 3)),
            ([3], ("list.1", 3)),
            ({"g": []}, ("list.g", [])),
            ({"g": 3}, ("list.g", 3)),
            ({"g": [3]}, ("list.g", 3)),
        ],
    )
    def test_no_list_of_terms(self, tmp_path: Path, terms: object, fault: tuple[str, Any]) -> None:
        assert self.faults(tmp_path, list=terms) == [fault]


class TestResolved:
    def test_no_secret_in_repr_or_json(self) -> None:
        corpus = {"path": "jdbc://user:hunter2@host/x", "options": {"password": "hunter3"}}
        config = parse_config(changed(corpus=corpus, output={"path": "s3a://key:hunter4@b/x"}), Path())
        resolved = config.resolved()["corpus"]
        assert (resolved["path"], resolved["options"]) == ("jdbc://(redacted)@host/x", {"password": "(redacted)"})
        assert "hunter" not in config.json
        assert "hunter3" not in repr(config)

    def test_written_as_toml_it_is_the_same_configuration(self) -> None:
        rules = [{"name": name, "metric": "auc", "min": 0.5} for name in ("floor", 'é "')]
        config = parse_config(changed(slices={"full time": "hours >= \n4"}, gate={"rule": rules}), Path())
        assert parse_config(tomllib.loads(write_toml(config.resolved())), Path()) == config

    def test_hash_is_of_what_is_meant(self) -> None:
        def hash_of(**tables: dict[str, Any]) -> str:
            return parse_config(changed(**tables), Path()).hash

        assert hash_of() == hash_of(ranking={"engine": "blocks"}, corpus={"options": {}})
        assert hash_of() != hash_of(ranking={"ranges": 1})
        assert hash_of(identities={"columns": ["a", "b"]}) != hash_of(identities={"columns": ["b", "a"]})
        passwords = ({"options": {"password": password}} for password in "xy")
        assert len({hash_of(corpus=corpus) for corpus in passwords}) == 1

    def test_hash_stays_from_version_to_version(self) -> None:
        assert parse_config(LEAST, Path()).json == (
            '{"corpus":{"name":"civil","path":"/data/civil","format":"parquet","options":{},"duplicates":"allow"},'
            '"label":{"column":"toxic"},"models":{"toxicity":"toxicity"},"identities":{"columns":["male"],'
            '"threshold":0.5,"unannotated":"exclude","categorical":[],"predicates":{},'
            '"crossed":{"pairs":false,"min_rows":1000}},"slices":{},"ranking":{"engine":"blocks","ranges":0},'
            '"intervals":{"level":0.95},"output":{"path":"/warehouse","format":"parquet"},"rejects":{"max_rows":10000,"allow_missing_models":false}}'
        )

    def test_it_reads_back(self, tmp_path: Path) -> None:
        config = load_config(write(tmp_path / "c.toml", WHOLE), ["corpus.options={}"])
        assert parse_config(json.loads(config.json), Path()) == config
        assert pickle.loads(pickle.dumps(config)) == config
