"""The page of promises names tests that exist; and nothing here talks to anyone."""

import re
import socket
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelPCA, StreamingKernelPCA
from mercer.bases import Landmarks

PAGE = Path(__file__).parents[1] / "docs" / "guarantees.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="only a checkout has the page")
def test_every_promise_names_a_test_that_exists():
    promises = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(promises) > 12
    for promise in promises:
        named = re.findall(r"`tests/([\w/]*test_\w+\.py)::(test_\w+)`", promise)
        assert named, promise
        for file, test in named:
            source = (Path(__file__).parent / file).read_text()
            assert f"def {test}(" in source, f"{file} has no {test}"


def test_nothing_opens_a_connection(monkeypatch, tmp_path):
    """Fits, files, plans and the command, with sockets that cannot be made."""

    def refuse(*args, **options):
        raise AssertionError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = KernelPCA(3, kernel="rbf", basis=Landmarks(9), random_state=0).fit(X)
    model.save(tmp_path / "a.mercer")
    mercer.load(tmp_path / "a.mercer").transform(X)
    StreamingKernelPCA(2, kernel="rbf", budget=9).fit(X).score(X)
    mercer.plan((1000, 4))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d", comments="")
    from mercer.cli import main

    assert not main(["fit", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "b.mercer"), "-q"])
