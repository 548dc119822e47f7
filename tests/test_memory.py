"""Where memory runs out: MemoryError, and the process goes on.

The limit is set after the input is there, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux to limit memory")

#: Runs `call` with about `spare` more bytes of address space than are used by now.
HARNESS = """
    import resource
    import numpy as np
    import milfast as mf
    from milfast import _core

    mf.auc(np.arange(70_000.0), np.arange(70_000) % 2)  # the pool and what imports on first use are there
    mf.sample_bags("presence", 3, random_state=0)

    def limited(call, spare):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + spare, before[1]))
        try:
            call()
        except MemoryError as error:
            print("MemoryError", error)
        else:
            print("finished")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def recipe(**changes):
        draws = [([(1, 2)], [0], [1.0], "bag", 1.0)]
        given = dict(
            means=np.zeros((2, 3)), deviations=[1.0, 1.0], negative=draws, positive=draws, filler=0, size=None,
            pad_to=0, n_negative=1, n_positive=1, shuffled=True, seed=0, single=False,
        )
        return _core.sample_bags(**given | changes)
"""

CALLS = {
    "sample_bags": "call = lambda: mf.sample_bags('presence', 10**7, random_state=0)",
    "sample_bags_few_large": "call = lambda: mf.sample_bags('presence', 2, pad_to=50_000_000, random_state=0)",
    "counts_beyond_32_bits": (  # their sum wraps to 0 in 32 bits
        "call = lambda: recipe(negative=[([(2**31, 2**31)] * 2, [0], [1.0], 'bag', 1.0)], n_positive=0)"
    ),
    "balanced": "call = lambda: recipe(negative=[([(1, 1)], [0, 1], [1, 1], 'balanced', 1)], n_negative=3 * 10**7)",
    "components": "x = np.zeros((2, 10**7)); call = lambda: recipe(means=x)",
    "rbf_gram": "x = np.zeros((1, 10**7)); call = lambda: mf.rbf_gram(x, gamma=1)",
    "bag_gram": "bags = mf.Bags(np.zeros((2, 10**7)), [0, 1, 2]); call = lambda: mf.bag_gram(bags, gamma=1)",
    "jaccard": "x = np.zeros((3000, 10**5), bool); x[:2] = True; call = lambda: mf.jaccard_matrix(x)",
    "jaccard_packed": (
        "x = np.zeros((2, 5 * 10**7), np.uint8); call = lambda: mf.jaccard_matrix(x, n_samples=4 * 10**8)"
    ),
    "intersections": "x = np.eye(9000, 8, dtype=bool); call = lambda: _core.intersections(x)",
    "weighted_sets": (  # as many words as weights have digits
        "x = np.random.rand(64, 10**6) < 0.5; w = np.full(10**6, 2**32 - 1)\n"
        "call = lambda: _core.agreement_summary(x, sample_weight=w)"
    ),
    "sets_as_integers": "x = np.ones((2, 10**7), np.int32); call = lambda: _core.agreement_summary(x)",
    "chance_levels": "x = np.full(2 * 10**7, 5); call = lambda: _core.chance_levels(9, x, x)",
    "sample_counts": "x = np.ones((1, 2 * 10**7), bool); call = lambda: _core.sample_counts(x)",
    "diagonal": "x = np.zeros((1, 10**7)); call = lambda: _core.bag_kernel_diagonal(x, np.array([0, 1]), gamma=1)",
    "auc": "scores = np.random.rand(30_000_000); labels = scores > 0.5; call = lambda: mf.auc(scores, labels)",
    "auc_many": (
        "scores = np.random.rand(2, 20_000_000); labels = scores[0] > 0.5; call = lambda: mf.auc_many(scores, labels)"
    ),
    "auc_many_without_columns": "scores = np.zeros((10**12, 0)); call = lambda: mf.auc_many(scores, [])",
    "partial": (
        "scores = np.random.rand(10**7); labels = scores > 0.5; call = lambda: mf.auc(scores, labels, max_fpr=0.1)"
    ),
    "weighted": (
        "scores = np.random.rand(10**7); labels = scores > 0.5\n"
        "call = lambda: mf.auc(scores, labels, sample_weight=scores)"
    ),
    "converted": ("scores = np.ones(2 * 10**7, bool); labels = scores.copy(); call = lambda: mf.auc(scores, labels)"),
    "converted_weights": (
        "scores = np.arange(2 * 10**7); labels = scores > 5\n"
        "call = lambda: mf.auc(scores, labels, sample_weight=scores)"
    ),
    "strided": (
        "scores = np.zeros((2 * 10**7, 2))[:, 0]; labels = np.ones(len(scores), bool)\n"
        "call = lambda: mf.auc(scores, labels)"
    ),
    "delong": ("scores = np.random.rand(10**7); labels = scores > 0.5; call = lambda: _core.delong(scores, labels)"),
    "covariance": (
        "scores = np.random.rand(2, 5 * 10**6); labels = scores[0] > 0.5\n"
        "call = lambda: _core.delong_covariance(scores, labels)"
    ),
    "bootstrap": (
        "scores = np.random.rand(10**7); labels = scores > 0.5\n"
        "call = lambda: _core.bootstrap_auc(scores, labels, 1, random_state=0)"
    ),
    "replicates": "call = lambda: _core.bootstrap_auc([1, 2], [0, 1], 10**8, random_state=0)",
    "accumulator": (
        "scores = 2.0 ** np.random.uniform(-200, 200, 10**5); labels = scores > 0.5\n"
        "call = lambda: mf.AUCAccumulator(bins=65536).update(scores, labels)"
    ),
    "accumulator_exact": (
        "scores = np.random.rand(10**7); labels = scores > 0.5\n"
        "call = lambda: mf.AUCAccumulator(exact=True).update(scores, labels)"
    ),
    "from_counts": "pos = np.ones(2 * 10**7, np.int64); call = lambda: mf.auc_from_counts(pos, pos)",
    "labels": "labels = np.ones(10**8, np.int8); call = lambda: _core.binary_labels(labels)",
}


def python(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(HARNESS) + textwrap.dedent(code)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", CALLS)
def test_a_lack_of_memory_is_an_exception(name: str, threads: str) -> None:
    code = f"""
{textwrap.indent(CALLS[name], "    ")}
    limited(call, 40 << 20)
    print(mf.auc([1, 2], [0, 1]))
    """
    printed = python(code, MILFAST_NUM_THREADS=threads)
    first, last = printed.splitlines()
    assert first.startswith("MemoryError")
    assert last == "1.0"


def test_the_message_tells_how_much_was_asked_for() -> None:
    code = f"{CALLS['rbf_gram']}; limited(call, 40 << 20)"
    # a copy begins at a cache line, for which it may have to leave out up to 64 bytes
    wanted = "MemoryError there is no room for a copy of the instances: 1280000064 bytes were asked for"
    assert python(textwrap.indent(code, "    ")) == wanted
    code = f"{CALLS['counts_beyond_32_bits']}; limited(call, 40 << 20)"
    wanted = "MemoryError there is no room for the kinds of the instances: 8589934592 bytes were asked for"
    assert python(textwrap.indent(code, "    ")) == wanted


BITS, RESULT = 3000 * 80_000 // 8, 8 * 3000**2


@pytest.mark.parametrize(
    ("call", "room", "end"),
    [
        ("mf.jaccard_matrix(x)", 0.95 * (BITS + RESULT), "MemoryError"),
        ("mf.jaccard_matrix(x)", 1.05 * (BITS + RESULT), "finished"),
        ("_core.agreement_summary(x)", 1.05 * BITS, "finished"),
    ],
)
def test_jaccard_takes_the_bits_and_the_result(call: str, room: float, end: str) -> None:
    code = f"""
    x = np.random.default_rng(0).integers(0, 2, (3000, 80_000), np.uint8)
    mf.jaccard_matrix(x[:300])  # long enough for a thread, which has its stack and its part of the heap then
    limited(lambda: {call}, {int(room)})
    """
    assert python(code, MILFAST_NUM_THREADS="1").split()[0] == end


def test_memory_may_run_out_at_any_place() -> None:
    # The same calls with more and more room, so that now one and now another allocation fails.
    code = """
    scores = np.random.default_rng(0).random(1_500_000)
    labels = scores > 0.3
    calls = [
        lambda: mf.sample_bags("presence", 300_000, random_state=0),
        lambda: mf.auc(scores, labels),
        lambda: mf.auc(scores, labels, max_fpr=0.1),
        lambda: mf.auc_many(scores.reshape(3, -1), labels[:500_000]),
        lambda: _core.delong(scores, labels),
        lambda: mf.rbf_gram(scores.reshape(3, -1), gamma=1),
        lambda: mf.jaccard_matrix(scores.reshape(3000, -1) < 0.5),
    ]
    for spare in range(1, 120, 17):
        for call in calls:
            limited(call, spare << 20)
    """
    printed = python(code, MILFAST_NUM_THREADS="2").splitlines()
    assert len(printed) == 49
    kinds = {line.split()[0] for line in printed}
    assert kinds == {"MemoryError", "finished"}


@pytest.mark.parametrize("options", ["", ", set_kernel='soft-match'", ", kernel='poly'"])
def test_the_kernel_of_all_instance_pairs_is_never_built(options: str) -> None:
    # 12,000 instances: all pairs would take 1.1 GiB, the matrix of the bags 17 MiB.
    code = f"""
    offsets = np.arange(0, 12_001, 8)
    bags = mf.Bags(np.random.default_rng(0).standard_normal((12_000, 4)), offsets)
    limited(lambda: mf.bag_gram(bags, gamma=0.1{options}), 96 << 20)
    """
    assert python(code, MILFAST_NUM_THREADS="2").startswith("finished")
