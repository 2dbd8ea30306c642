"""The frame of the command: help, usage, errors, output files, messages."""

import argparse
import contextlib
import errno
import json
import os
import pickle
import re
import shlex
import shutil
import signal
import sys
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from contracts import generator

import mercer
from mercer import bases, demo, kernels, solvers
from mercer.cli import main
from mercer.cli.frame import one_line
from mercer.cli.outputs import Result, to_json, whole_file, whole_folder
from mercer.cli.parser import COMMANDS, TABLE, JobError, in_options, make_parser
from mercer.demo import FILES

FILES_HERE = {"rows.npy", "rows.npz", "rows.csv"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with a small table."""
    monkeypatch.chdir(tmp_path)
    X = generator(3).standard_normal((30, 3))
    np.save("rows.npy", X)
    np.savez("rows.npz", first=X, second=X)
    lines = [f"{a},{b},{c},r{i}" for i, (a, b, c) in enumerate(X)]
    Path("rows.csv").write_text("\n".join(["a,b,c,name", *lines]) + "\n")
    return tmp_path


@pytest.fixture
def command(monkeypatch):
    """Put a command called `try` into the frame, which does what a test wants."""

    def install(run):
        declared = {"summary": "Try.", "examples": ["mercer try"], "run": "demo", "groups": []}
        monkeypatch.setitem(COMMANDS, "try", declared | {"options": {}})
        monkeypatch.setattr(demo, "try", run, raising=False)

    return install


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory):
    """The folder that the example of `mercer demo` made, once for all tests."""
    (line,) = COMMANDS["demo"]["examples"]
    folder = tmp_path_factory.mktemp("demonstration")
    with contextlib.chdir(folder):
        assert main(shlex.split(line)[1:]) == 0
    return folder / "demo-output"


def examples():
    return [
        pytest.param(line.strip(), id=line.strip()[:70])
        for name, declared in COMMANDS.items()
        for line in declared["examples"]
        if name != "demo"  # which the fixture runs
    ]


@pytest.mark.parametrize("line", examples())
def test_examples_of_help_texts_work(line, demonstration, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demonstration, "demo-output")
    for name in ("digits.csv", "scores.csv"):  # fewer rows, for time
        rows = Path("demo-output", name).read_text().splitlines()[:301]
        Path("demo-output", name).write_text("\n".join(rows) + "\n")
    before = set(tmp_path.rglob("*"))
    program, *arguments = shlex.split(line)
    assert program == "mercer"
    assert main(arguments) == 0, capsys.readouterr().err
    assert capsys.readouterr().out
    if "-o" in arguments:
        made = set(tmp_path.rglob("*")) - before
        assert made == {tmp_path / arguments[arguments.index("-o") + 1]}


def test_demonstration_leaves_what_it_names(demonstration, tmp_path, capsys):
    made = {path.name for path in demonstration.iterdir()}
    assert made == set(FILES.values())
    assert b"<html" in (demonstration / "report.html").read_bytes()[:200]
    assert main(["demo", str(demonstration)]) == 1
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_summary_options_and_example(name, capsys):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert COMMANDS[name]["summary"].split(":")[0] in " ".join(out.split())
    assert f"example:\n  mercer {name}" in out and "--json" in out and "--debug" in out


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n    {name} " in out for name in COMMANDS)


def test_version_and_entry_point(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mercer {mercer.__version__}\n"
    project = Path(mercer.__file__).parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["scripts"]["mercer"] == "mercer.cli:main"


@pytest.mark.parametrize(
    ("names", "registry", "hidden"),
    [
        (TABLE["registries"]["kernels"], kernels.KERNELS, ["polynomial"]),
        (TABLE["registries"]["solvers"], solvers.SOLVERS, []),
        (TABLE["registries"]["bases"], bases.BASES, ["points"]),
    ],
    ids=["kernels", "solvers", "bases"],
)
def test_names_are_those_of_the_registry(names, registry, hidden):
    """They are written down once more, so that help does not wait for numerics."""
    assert list(names) == [name for name in registry if name not in hidden]


def test_the_command_alone_shows_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert "usage: mercer" in out and "fit" in out and err == ""


@pytest.mark.parametrize(
    ("line", "near", "command"),
    [
        ("fitt rows.csv", "fit?", "mercer --help"),
        ("fit rows.csv -o m.mercer --componets 3", "--components?", "mercer fit --help"),
        ("fit rows.csv -o m.mercer --landmark=3", "--landmarks?", "mercer fit --help"),
        ("fit rows.csv -o m.mercer --kernel rfb", "rbf?", "mercer fit --help"),
        ("fit rows.csv -o m.mercer --method krilov", "krylov?", "mercer fit --help"),
        ("fit rows.csv -o m.mercer --selector kmeens", "KMeans?", "mercer fit --help"),
        ("compare rows.csv --methods exact,landmark", "landmarks?", "mercer compare --help"),
        ("cluster rows.csv", "--clusters", "mercer cluster --help"),
        ("plan", "--shape", "mercer plan --help"),
    ],
)
def test_wrong_words_have_a_near_one_and_help_of_their_own(line, near, command, here, capsys):
    assert main(line.split()) == 2
    err = capsys.readouterr().err
    assert near in err and err.endswith(f"See {command}\n") and err.count("\n") == 1


def test_wrong_columns_have_a_near_one(here, capsys):
    assert main(["fit", "rows.csv", "--drop", "nam", "-o", "m.mercer"]) == 1
    assert "no column 'nam', which was asked for. Did you mean name?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("fit missing.csv -o m.mercer", 1),
        ("fit rows.csv -o m.mercer --kernel bogus", 2),
        ("fit rows.csv -o m.mercer --selector bogus", 2),
        ("bogus", 2),
    ],
)
def test_errors_are_json_too(line, code, here, capsys):
    assert main([*line.split(), "--json"]) == code
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["error"]["exit_code"] == code and found["warnings"] == []
    assert err == f"mercer: error: {found['error']['message']}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_options_and_kernels(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["--print-completion", shell]) == 0
    out = capsys.readouterr().out
    words = [*COMMANDS, "--landmarks", *(["rational_quadratic"] if shell != "tcsh" else [])]
    assert all(word.lstrip("-") in out for word in words)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bogus", "'bogus'"),
        ("fit", "DATA"),
        ("fit rows.csv", "--output"),
        ("fit rows.csv -o model.bin", ".mercer"),
        ("fit rows.csv -o m.mercer --components 0", "share of variance"),
        ("fit rows.csv -o m.mercer --components 1.5", "share of variance"),
        ("fit rows.csv -o m.mercer --components few", "share of variance"),
        ("fit rows.csv -o m.mercer --kernel bogus", "rbf"),
        ("fit rows.csv -o m.mercer --gamma -1", "median"),
        ("fit rows.csv -o m.mercer --gamma nan", "median"),
        ("fit rows.csv -o m.mercer --degree -1", "--degree: "),
        ("fit rows.csv -o m.mercer --memory lots", "300MB"),
        ("fit rows.csv -o m.mercer --tol 0", "positive"),
        ("fit rows.csv -o m.mercer --columns a,,b", "empty name"),
        ("fit rows.csv -o m.mercer --seed -1", "at least 0"),
        ("fit rows.csv -o m.mercer --comp 3", "--comp"),
        ("fit rows.csv -o m.mercer --landmarks 5 --method exact", "--landmarks"),
        ("fit rows.csv -o m.mercer --features 5 --method exact", "--features"),
        ("fit rows.csv -o m.mercer --selector bogus", "KMeans"),
        ("fit rows.csv -o m.mercer --passes 3", "--passes"),
        ("fit rows.csv -o m.mercer --target name --checkpoint c", "--checkpoint"),
        ("fit rows.csv -o m.mercer --degree two", "'two'"),
        ("fit rows.csv -o m.mercer --method hebbian --components 0.9", "hebbian"),
        ("plan", "--shape"),
        ("plan rows.csv --shape 100x3", "either"),
        ("plan --shape 100", "100000x54"),
        ("compare rows.csv --methods exact,bogus", "'bogus'"),
        ("compare rows.csv -o picture.txt", ".png"),
        ("cluster rows.csv", "--clusters"),
        ("report m.mercer rows.csv -o r.html --image 8", "28x28"),
        ("denoise photo.png -o out.txt", ".png"),
    ],
)
def test_wrong_usage_is_one_line_and_2(line, said, here, capsys):
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith("mercer: error: ") and err.count("\n") == 1 and said in err
    assert out == "" and {path.name for path in here.iterdir()} == FILES_HERE


BAD_FILES = {
    "nan.csv": ("a,b\n1,2\n3,nan\n4,5\n", "row 1 (counted from 0) holds NaN"),
    "inf.csv": ("a,b\n1,2\n3,inf\n4,5\n", "NaN or infinity in column 'b'"),
    "one.csv": ("a,b\n1,2\n", "one row"),
    "words.csv": ("a,b\nu,v\nw,x\n", "no column of numbers"),
    "empty.csv": ("", "is empty"),
    "header.csv": ("a,b\n", "no rows"),
    "ragged.csv": ("a,b\n1,2\n3\n", "cells"),
    "broken.npy": ("not an array", "the magic string is not correct"),
    "broken.parquet": ("not a table", "cannot be read as Parquet"),
    "rows.xyz": ("1,2", "not known"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_data_is_one_line_and_1(name, here, capsys):
    text, said = BAD_FILES[name]
    Path(name).write_text(text)
    assert main(["fit", name, "-o", "model.mercer"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("mercer: error: ") and err.count("\n") == 1 and said in err
    assert out == "" and {path.name for path in here.iterdir()} == FILES_HERE | {name}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fit missing.npy -o m.mercer", "missing.npy"),
        ("fit rows.csv --columns a,name -o m.mercer", "'name' is not made of numbers"),
        ("fit rows.csv --columns a,z -o m.mercer", "Its columns are a, b, c, name"),
        ("fit rows.csv --drop z -o m.mercer", "no column 'z'"),
        ("fit rows.csv --drop a,b,c -o m.mercer", "No column of rows.csv is left"),
        ("fit rows.npy --columns 7 -o m.mercer", "Its columns are 0, 1, 2"),
        ("fit rows.csv -o nowhere/m.mercer", "no folder nowhere"),
        pytest.param(
            *("fit rows.csv -o /proc/m.mercer", "cannot be written"),
            marks=pytest.mark.skipif(sys.platform != "linux", reason="/proc"),
        ),
        ("fit rows.csv --kernel chi2 -o m.mercer", "negative"),
        ("fit rows.npz -o m.mercer", "Give --array one of these"),
        ("fit rows.npy --array a -o m.mercer", "--array is for archives, and rows.npy holds one"),
        ("fit rows.csv --array a -o m.mercer", "--array is for archives, and rows.csv is a table"),
        ("describe rows.csv", "not a mercer model file"),
        ("describe missing.mercer", "missing.mercer"),
        ("transform rows.npy rows.csv", "not a mercer model file"),
        ("mds rows.csv", "give --metric euclidean"),
        (
            "fit rows.csv --method arpack -r 30 -o m.mercer",
            "--components 30 must be fewer than the 30 rows",
        ),
        ("monitor rows.csv --lags 28", "needs at least"),
        ("cluster rows.csv -k 31", "--clusters 31 is more than"),
        ("denoise rows.csv -o out.png", "image"),
        ("denoise missing.png -o out.png", "missing.png"),
        ("compare rows.csv --kernel cosine --methods features", "Leave it out with --methods"),
    ],
)
def test_failed_jobs_say_why_and_leave_nothing(line, said, here, capsys):
    assert main(line.split()) == 1
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert last.startswith("mercer: error: ") and said in last and "Traceback" not in err
    assert not re.search(r"<\w|sample\(s\)|\w_\b|\w=\(", last), "words of the library"
    assert out == "" and {path.name for path in here.iterdir()} == FILES_HERE


def test_debug_shows_the_traceback(here, capsys):
    assert main(["fit", "missing.csv", "-o", "m.mercer", "--debug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err and err.splitlines()[-1].startswith("mercer: error: ")


def test_a_defect_is_named_as_one(command, capsys):
    command(lambda args: {}["no such key"])
    assert main(["try"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "unexpected KeyError" in err and "--debug" in err


def test_many_lines_of_an_error_become_one(command, capsys):
    def fail(args):
        raise ValueError("first\n  second\nthird")

    command(fail)
    assert main(["try"]) == 1
    assert capsys.readouterr().err == "mercer: error: first second third\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_pass_those_who_answer_an_interrupt_with_a_result(number, command, capsys):
    """As online methods do; a command that is stopped has none."""

    def answer(args):
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        except KeyboardInterrupt:
            return Result({}, "so far")

    command(answer)
    before = signal.getsignal(number)
    assert main(["try"]) == 128 + number
    assert capsys.readouterr() == (
        "",
        f"mercer: stopped by {number.name}; no file is half written\n",
    )
    assert signal.getsignal(number) is before


def test_warnings_are_lines_and_in_the_document(command, capsys):
    def warn(args):
        warnings.warn("be careful\nplease", UserWarning, stacklevel=1)
        warnings.warn("for developers", DeprecationWarning, stacklevel=1)
        return Result({"value": 1}, "one")

    command(warn)
    assert main(["try"]) == 0
    assert capsys.readouterr() == ("one\n", "mercer: warning: be careful please\n")
    assert main(["try", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"value": 1, "warnings": ["be careful please"]} and err == ""


def test_json_has_no_nan_and_no_numpy():
    facts = {
        "a": np.float32(0.5),
        "b": np.array([1.0, np.nan]),
        "c": (np.int64(1), np.inf),
        1: None,
    }
    assert json.loads(to_json(facts)) == {"a": 0.5, "b": [1.0, None], "c": [1, None], "1": None}


def test_messages_of_the_library_name_options(here, capsys):
    assert main(["fit", "rows.npy", "-r", "99", "-o", "m.mercer"]) == 0
    err = capsys.readouterr().err
    assert err == "mercer: warning: --components 99 is more than the 30 rows: 30 are kept.\n"


def test_numbers_that_overflow_are_told_in_words_of_the_command(here, capsys):
    np.save("huge.npy", 1e200 * np.random.default_rng(0).standard_normal((30, 3)))
    for line in ("fit huge.npy -o m.mercer", "cluster huge.npy -k 2 -o c.npy"):
        for kernel in ("", " --kernel poly --degree 2.5 --gamma 0.3"):
            assert main((line + kernel).split()) == 1
            err = capsys.readouterr().err
            assert "Scale the data" in err and "np." not in err and "(degree=2.5, --" not in err


def test_messages_about_python_are_about_the_command():
    told = "torch sees no CUDA device. Install a driver, or leave device out."
    assert in_options(told).endswith("or leave --device out.")
    told = "Array must be symmetric. Pass (D + D.T) / 2 if that is rounding."
    assert in_options(told).endswith("Average the two if that is rounding.")


def test_existing_outputs_stay_unless_forced(here, capsys):
    line = ["fit", "rows.csv", "-r", "2", "-o", "model.mercer"]
    assert main(line) == 0
    before = Path("model.mercer").read_bytes()
    assert main([*line, "--kernel", "linear"]) == 1
    assert "--force" in capsys.readouterr().err and Path("model.mercer").read_bytes() == before
    assert main([*line, "--kernel", "linear", "--force"]) == 0
    assert Path("model.mercer").read_bytes() != before


def test_whole_file_appears_at_the_end_or_never(tmp_path):
    target = tmp_path / "out.npy"
    with whole_file(target, force=False) as draft:
        assert draft.suffix == ".npy" and draft.is_relative_to(tmp_path)
        draft.write_text("done")
        assert not target.exists()
    assert target.read_text() == "done" and list(tmp_path.iterdir()) == [target]
    with pytest.raises(KeyboardInterrupt), whole_file(target, force=True) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "done" and list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_named(tmp_path):
    for whole in (whole_file, whole_folder):
        told = rf"{tmp_path}/a.npy cannot be written: No space left on device. Make room"
        with pytest.raises(OSError, match=told), whole(tmp_path / "a.npy", False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "out.npy"
    with pytest.raises(JobError, match="exists already"), whole_file(target, force=False) as draft:
        draft.write_text("ours")
        target.write_text("theirs")
    assert target.read_text() == "theirs" and list(tmp_path.iterdir()) == [target]


def test_new_files_have_ordinary_permissions(tmp_path):
    with whole_file(tmp_path / "out", force=False) as draft:
        draft.write_text("done")
    (tmp_path / "plain").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("output", ["folder", "missing/out.npy"])
def test_impossible_outputs_are_found_at_once(output, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises((JobError, FileNotFoundError)), whole_file(tmp_path / output, force=True):
        pytest.fail("the work began")


def test_whole_folder_moves_all_files_or_none(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError), whole_folder(target, force=False) as draft:
        (draft / "a").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with whole_folder(target, force=False) as draft:
        (draft / "a").write_text("1")
        (draft / "b").write_text("2")
    assert {path.name for path in target.iterdir()} == {"a", "b"}
    with pytest.raises(JobError, match="--force"), whole_folder(target, force=False):
        pytest.fail("the work began")
    (target / "mine").write_text("stays")
    with whole_folder(target, force=True) as draft:
        (draft / "a").write_text("new")
    assert (target / "a").read_text() == "new" and (target / "mine").read_text() == "stays"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("target", ["file", "missing/out"])
def test_impossible_folders(target, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises((JobError, FileNotFoundError)), whole_folder(tmp_path / target, force=True):
        pytest.fail("the work began")


def test_options_have_help():
    """No option is left unexplained."""
    subparsers = next(
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for name, parser in subparsers.choices.items():
        assert all(action.help for action in parser._actions), name


PAGES = ["README.md", "docs/start.md", "docs/command-line.md"]


def commands_of(page):
    """The command lines of a page, each with what is printed next."""
    lines = (Path(mercer.__file__).parents[2] / page).read_text().splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        line = line.removeprefix("$ ")
        if line.startswith("mercer ") and not line.startswith("mercer:"):
            words = shlex.split(line, comments=True)
            yield (words[: words.index("|")] if "|" in words else words), after


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_the_documentation_are_right_usage(page):
    """Options that change their name change it there too."""
    commands = [words for words, after in commands_of(page) if "See mercer" not in after]
    assert commands
    for command in commands:
        make_parser().parse_args(command[1:])


def test_outputs_of_pages_and_help_do_not_collide():
    """Who follows them one after the other never meets a file that exists already."""
    lines = [shlex.split(line) for m in COMMANDS.values() for line in m["examples"]]
    for page in PAGES:
        found = commands_of(page)
        lines += [words for words, after in found if not after.startswith("mercer: error")]
    outputs = [words[words.index("-o") + 1] for words in lines if "-o" in words]
    assert len(outputs) > 15
    assert sorted(set(outputs)) == sorted(outputs)


def test_the_page_of_the_command_needs_no_extra():
    """A base install has no pyarrow."""
    for words, _ in commands_of("docs/command-line.md"):
        assert not any(word.endswith((".parquet", ".feather", ".xlsx")) for word in words), words


def test_public_names_come_when_they_are_used():
    assert {"KernelPCA", "plot", "load"} <= set(dir(mercer))
    assert set(mercer._HOMES) <= set(mercer.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        mercer.nonsense  # noqa: B018


def test_errors_name_the_parameter_that_they_are_about():
    """As the command does with its own name of it; also after a trip to another process."""
    X = generator(4).standard_normal((9, 2))
    with pytest.raises(mercer.exceptions.InvalidParameterError) as raised:
        mercer.KernelPCA(2, degree=-1).fit(X)
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.parameter == raised.value.parameter == "degree"
    assert str(again) == str(raised.value)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("n_components=99 is more", "--components 99 is more"),
        ("Use eigen_solver='krylov' or basis='points'.", "Use --method krylov or --method exact."),
        ("give header=False; give header=True", "give --no-header; give --header"),
        ("Give name= one of these", "Give --array one of these"),
        ("Raise memory, or raise max_iter or tol", "Raise --memory, or raise --passes or --tol"),
        ("it is in memory, RBF(gamma=2.0)", "it is in memory, RBF(gamma=2.0)"),
    ],
)
def test_parameters_of_messages_become_options(said, heard):
    assert one_line(ValueError(said)) == heard
