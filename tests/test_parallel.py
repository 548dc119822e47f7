"""Threads, processes and signals: same bits everywhere, no deadlock after a fork, Ctrl-C, imports.

Whatever depends on the environment or on signals runs in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import milfast as mf
from milfast._core import bag_kernel

posix = pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")

#: Runs every kernel on input that is large enough for the pool, and prints a hash of each result's bytes.
DIGESTS = """
    import hashlib
    import numpy as np
    import milfast as mf
    from milfast._core import KernelRows, auc_jackknife, bootstrap_auc, delong, delong_covariance, bag_kernel_diagonal
    from milfast._core import kernel_sums
    from milfast.consistency import agreement_matrix, chance_level, error_consistency, intersections, sample_counts
    from milfast.consistency import summary

    def kernels():
        rng = np.random.default_rng(0)
        scores, labels = rng.standard_normal(80_000), rng.integers(0, 2, 80_000)
        yield "auc", mf.auc(scores, labels)
        yield "auc32", mf.auc(scores.astype(np.float32), labels)
        yield "weighted", mf.auc(scores, labels, sample_weight=rng.random(80_000))
        yield "delong", delong(scores, labels)
        for name, hard in (("tied", scores.round(1)), ("saturated", 1 / (1 + np.exp(-60 * scores)))):
            yield name, mf.auc(np.tile(hard, 4), np.tile(labels, 4))
            yield f"{name}32", mf.auc(hard.astype(np.float32)[:70_000], labels[:70_000])
            yield f"{name}-integers", mf.auc((hard * 1e9).astype(np.int64)[:75_000], labels[:75_000])
        models = np.stack([scores, scores**2, scores.round(1)])
        yield "covariance", delong_covariance(models, labels)[1]
        yield "jackknife", auc_jackknife(scores.round(2), labels)
        for stratified in (True, False):
            yield f"bootstrap-{stratified}", bootstrap_auc(models, labels, 9, stratified=stratified, random_state=1)
        accumulator = mf.AUCAccumulator()
        accumulator.update(scores, labels)
        yield "accumulator", np.concatenate([np.array(v, float) for v in list(accumulator.to_dict().values())[1:]])
        yield "many", mf.auc_many(scores.reshape(400, 200), labels[:200])
        yield "small", mf.auc_many(scores.reshape(-1, 20), labels[:20] | (np.arange(20) == 0))
        x = rng.standard_normal((700, 9))
        for dtype in (np.float64, np.float32):
            bags = mf.Bags(x.astype(dtype), np.cumsum([0, *[1, 2, 17, 30] * 14]))
            yield f"gram-{dtype.__name__}", mf.rbf_gram(bags.instances, gamma=0.1)
            yield f"cross-{dtype.__name__}", mf.rbf_gram(bags.instances, bags.instances[:333], gamma=0.1)
            yield f"sums-{dtype.__name__}", mf.bag_gram(bags, gamma=0.1)
            yield f"cross-sums-{dtype.__name__}", mf.bag_gram(bags, bags[:9], gamma=0.1)
            for kernel in ("rbf", "poly"):
                for set_kernel in ("nsk", "match", "soft-match"):
                    options = dict(kernel=kernel, set_kernel=set_kernel, gamma=3.0, dtype=dtype.__name__)
                    yield f"{kernel}-{set_kernel}-{dtype.__name__}", mf.bag_gram(bags, bags[5:40], **options)
            wide = np.tile(bags.instances, 20)
            yield f"mirrored-{dtype.__name__}", mf.rbf_gram(wide, gamma=0.1)
            yield f"diagonal-{dtype.__name__}", bag_kernel_diagonal(bags.instances, bags.offsets, gamma=0.1)
        for recipe in ("paper", "strict"):
            for dtype in ("float32", "float64"):
                bags = mf.sample_bags("presence", 800, recipe=recipe, random_state=7, dtype=dtype)
                yield f"{recipe}-{dtype}", np.concatenate([bags.instances.ravel(), bags.offsets, bags.labels])
        errors = rng.random((501, 3001)) < rng.beta(0.5, 0.5, 3001)
        weights = rng.poisson(1.0, 3001)
        yield "jaccard", mf.jaccard_matrix(errors)
        yield "jaccard-packed", mf.jaccard_matrix(np.packbits(errors[1:], axis=1), n_samples=3001)
        for measure in ("kappa", "phi", "yule-q", "dice", "agreement", "double-fault"):
            yield measure, agreement_matrix(errors, measure, condensed=True)
            yield f"{measure}-32", agreement_matrix(errors, measure, dtype="float32")
            yield f"{measure}-summary", list(vars(summary(errors, measure)).values())[1:]
        for kernel in ("rbf", "poly"):
            options = dict(kernel=kernel, gamma=0.05, degree=2)
            yield f"kernel-sums-{kernel}", kernel_sums(x, x[:333], x[:333, 0], **options)
            rows, signs = KernelRows(x, cache_bytes=1_000_000, **options), np.sign(x[:, 1])
            yield f"kernel-times-{kernel}", rows.times(x[:, 0])
            bounds = np.minimum(signs, 0), np.maximum(signs, 0)
            yield f"solve-{kernel}", np.hstack(rows.solve(*bounds, -signs))
            pairs = dict(starts=np.arange(0, 701, 2), members=rng.permutation(700), weights=x[:, 2])
            shared = dict(groups=np.where(signs < 0, np.arange(700) // 9, -1)[:350], limits=np.full(39, 0.5))
            yield f"groups-{kernel}", np.hstack(rows.solve(*(b[:350] for b in bounds), -signs[:350], **pairs, **shared))
        for measure in ("jaccard", "q"):
            yield f"chance-{measure}", chance_level(3001, errors.sum(axis=1), errors.sum(axis=1)[:, None], measure)
        found = error_consistency(errors[:99])
        yield "consistency", [found.mean, found.chance, found.micro, *found.replicates(n_replicates=3, random_state=0)]
        yield "both", intersections(errors)
        yield "both-weighted", intersections(errors, sample_weight=weights, condensed=True)
        yield "weighted-mean", summary(errors, sample_weight=weights).mean
        yield "samples", sample_counts(errors)

    def digests():
        return {name: hashlib.sha256(np.asarray(value).tobytes()).hexdigest() for name, value in kernels()}
"""


def python(code: str, *, timeout: float = 60, **variables: str) -> str:
    """What a fresh interpreter prints; it is killed when it hangs."""
    source = textwrap.dedent(DIGESTS) + textwrap.dedent(code)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MILFAST_")} | variables
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


# ---------------------------------------------------------------- same bits


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    digests: dict[str, str] = eval(python("print(digests())", MILFAST_NUM_THREADS="1", MILFAST_SIMD="baseline"))
    assert len(set(digests.values())) == len(digests), "two kernels with the same result: one of them did not run"
    return digests


@pytest.mark.parametrize("simd", ["baseline", "avx2", "avx512", "avx512-vpopcnt"])
@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_threads_and_instruction_sets_change_no_bit(reference: dict[str, str], threads: str, simd: str) -> None:
    printed = python(
        """
        from milfast._core import simd_level
        print((mf.get_num_threads(), simd_level(), digests()))
        """,
        MILFAST_NUM_THREADS=threads,
        MILFAST_SIMD=simd,
    )
    used, level, digests = eval(printed)
    assert digests == reference
    assert used == int(threads)
    # A processor without the level falls back to one below it.
    levels = ["baseline", "avx2", "avx512", "avx512-vpopcnt"]
    assert levels.index(level) <= levels.index(simd)


# ---------------------------------------------------------------- number of threads


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5"])
def test_a_bad_environment_variable_is_named_and_does_not_stop_the_import(value: str) -> None:
    printed = python(
        """
        def message(call):
            try:
                call()
            except ValueError as error:
                return str(error)
        print(message(mf.get_num_threads))
        print(message(lambda: mf.auc(np.arange(70_000), np.arange(70_000) % 2)))
        mf.set_num_threads(2)
        print(mf.get_num_threads())
        """,
        MILFAST_NUM_THREADS=value,
    )
    first, second, third = printed.splitlines()
    assert first == second == f'MILFAST_NUM_THREADS must be a positive integer; it is "{value}"'
    assert third == "2"


@pytest.mark.parametrize("value", ["1025", "9999999", "1" + 30 * "0"])
def test_too_many_threads_in_the_environment_are_refused(value: str) -> None:
    code = """
    try:
        mf.auc(np.arange(70_000), np.arange(70_000) % 2)
    except ValueError as error:
        print(error)
    """
    assert python(code, MILFAST_NUM_THREADS=value) == f'MILFAST_NUM_THREADS must be at most 1024; it is "{value}"'


@pytest.mark.parametrize("n", [1025, 10**6, 2**63 - 1, 2**70])
def test_too_many_threads_are_refused(n: int) -> None:
    before = mf.get_num_threads()
    with pytest.raises(ValueError, match="n must be at most 1024; got"):
        mf.set_num_threads(n)
    assert mf.get_num_threads() == before


@pytest.mark.parametrize("n", [0, -1, -(2**62), -(2**70)])
def test_less_than_one_thread_is_refused(n: int) -> None:
    before = mf.get_num_threads()
    with pytest.raises(ValueError, match=f"n must be at least 1; got {n}"):
        mf.set_num_threads(n)
    assert mf.get_num_threads() == before


def test_the_number_of_threads_can_change_at_any_time() -> None:
    code = """
        results = []
        for n in (1, 4, 2, 1, 3):
            mf.set_num_threads(n)
            assert mf.get_num_threads() == n
            results.append(digests())
        print(all(r == results[0] for r in results))
    """
    assert python(code) == "True"


@posix
def test_where_no_thread_can_be_started_the_calling_thread_does_the_work(reference: dict[str, str]) -> None:
    code = """
    scores = np.random.default_rng(0).random(2_000_000)  # long enough for a thread of its own
    print(mf.auc(scores, scores > 0.5))
    print(digests())
    """
    # A stack that cannot be had: every attempt to start a thread fails.
    first, second = python(code, MILFAST_NUM_THREADS="4", RUST_MIN_STACK=str(2**50)).splitlines()
    assert first == "1.0"
    assert eval(second) == reference


# ---------------------------------------------------------------- forks

FORK = """
    mf.set_num_threads(4)
    before = digests()
    assert any("milfast" in open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task"))
"""


@posix
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc to see the threads of the pool")
@pytest.mark.parametrize("again", ["", "mf.set_num_threads(2)"], ids=["as-is", "new-pool"])
def test_a_child_forked_after_the_pool_was_used_runs_every_kernel(again: str) -> None:
    code = f"""
    import os, signal
    {textwrap.indent(textwrap.dedent(FORK), "    ").lstrip()}
    child = os.fork()
    if child == 0:
        signal.alarm(40)  # ends a child that hangs
        {again or "pass"}
        os._exit(0 if digests() == before else 3)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), digests() == before)
    """
    assert python(code) == "0 True"


@posix
def test_children_of_multiprocessing_run_every_kernel() -> None:
    code = """
    import multiprocessing, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
    mf.set_num_threads(3)
    before = digests()

    def work(_):
        return digests()

    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(all(result == before for result in pool.map_async(work, range(3)).get(timeout=50)))
    """
    assert python(code) == "True"


@posix
def test_a_child_forked_while_a_kernel_runs_in_another_thread_does_not_hang() -> None:
    code = """
    import os, signal, threading, time
    mf.set_num_threads(2)
    before = digests()
    stop = threading.Event()
    x = np.random.default_rng(1).standard_normal((600, 30))

    def busy():
        while not stop.is_set():
            mf.rbf_gram(x, gamma=0.1)

    thread = threading.Thread(target=busy)
    thread.start()
    statuses = []
    for _ in range(5):
        time.sleep(0.02)
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            os._exit(0 if digests() == before else 3)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    thread.join()
    print(statuses)
    """
    assert python(code) == "[0, 0, 0, 0, 0]"


# ---------------------------------------------------------------- Ctrl-C

LONG_KERNELS = {
    # Each takes far longer than the test waits if nothing stops it.
    "rbf_gram": "x = np.ones((9_000, 2_000)); run = lambda: mf.rbf_gram(x, gamma=1.0)",
    "bag_gram": (
        "bags = mf.Bags(np.ones((9_000, 2_000)), np.arange(0, 9_001, 10)); run = lambda: mf.bag_gram(bags, gamma=1.0)"
    ),
    "two_large_bags": (
        "bags = mf.Bags(np.ones((60_000, 64)), [0, 30_000, 60_000]); run = lambda: mf.bag_gram(bags, gamma=1.0)"
    ),
    "soft_match": (
        "bags = mf.Bags(np.ones((60_000, 64)), [0, 30_000, 60_000])\n"
        "run = lambda: mf.bag_gram(bags, gamma=1.0, set_kernel='soft-match')"
    ),
    "poly": (
        "bags = mf.Bags(np.ones((60_000, 64)), np.arange(0, 60_001, 10))\n"
        "run = lambda: mf.bag_gram(bags, kernel='poly', gamma=1.0, set_kernel='match')"
    ),
    "diagonal": (
        "from milfast._core import bag_kernel_diagonal\n"
        "x = np.ones((60_000, 64)); run = lambda: bag_kernel_diagonal(x, np.array([0, 60_000]), gamma=1.0)"
    ),
    "kernel_sums": (
        "from milfast._core import kernel_sums\n"
        "x = np.ones((100_000, 64)); run = lambda: kernel_sums(x, x, np.ones(100_000), gamma=1.0)"
    ),
    "solve": (
        "from milfast._core import KernelRows\n"
        "x = np.random.default_rng(0).random((2_000, 2)); signs = np.where(np.arange(2_000) % 2, 1e9, -1e9)\n"
        "rows = KernelRows(x, gamma=1.0)\n"
        "run = lambda: rows.solve(np.minimum(signs, 0), np.maximum(signs, 0), -signs / 1e9, tol=1e-12)"
    ),
    "solve_wide": (
        "from milfast._core import KernelRows\n"
        "x = np.random.default_rng(0).random((6_000, 1_000)); signs = np.where(np.arange(6_000) % 2, 1.0, -1.0)\n"
        "rows = KernelRows(x, kernel='linear')\n"
        "run = lambda: rows.solve(np.minimum(signs, 0), np.maximum(signs, 0), -signs, tol=1e-12)"
    ),
    "wide_columns": "y = np.ones((50_000, 1_000)); run = lambda: mf.rbf_gram(y[:1_000], y, gamma=1.0)",
    "jaccard_many_sets": "x = np.tile(np.eye(64, dtype=bool), (480, 8)); run = lambda: mf.jaccard_matrix(x)",
    "jaccard_long_sets": (
        "x = np.random.default_rng(0).integers(0, 256, (300, 4 << 20), np.uint8)\n"
        "run = lambda: mf.consistency.summary(x, n_samples=32 << 20)"
    ),
    "sample_bags": "run = lambda: mf.sample_bags('presence', 4_000_000, random_state=0)",
    "sample_large_bags": (
        "run = lambda: mf.sample_bags('presence', 2, pad_to=20_000_000, n_features=2, random_state=0)"
    ),
}


@posix
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("kernel", LONG_KERNELS)
def test_ctrl_c_ends_a_long_kernel(kernel: str, threads: str) -> None:
    code = f"""
    import time
    import numpy as np
    import milfast as mf
{textwrap.indent(LONG_KERNELS[kernel], "    ")}
    print("ready", flush=True)
    try:
        run()
    except KeyboardInterrupt:
        print(time.process_time(), flush=True)
        print("interrupted", flush=True)
        print(mf.auc([1, 2], [0, 1]), flush=True)
    else:
        print("finished", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"MILFAST_NUM_THREADS": threads},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            before = processor_time(process.pid)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    after, *lines = output.split("\n")
    assert lines == ["interrupted", "1.0", ""]
    if before is not None:
        # not by the clock, which goes on while other programs hold the processors
        assert float(after) - before < 0.5 * int(threads)


def processor_time(pid: int) -> float | None:
    """Seconds of processor time that a process has used, where the system tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@posix
@pytest.mark.parametrize(
    "call",
    [
        "mf.auc(scores, labels)",
        "mf.auc(scores, labels, max_fpr=0.1)",
        "mf.auc(scores, labels, sample_weight=scores)",
        "mf.auc_many(scores.reshape(8, -1), labels[:1_500_000])",
        "delong(scores, labels)",
        "auc_jackknife(scores, labels)",
        "bootstrap_auc(scores, labels, 3, random_state=0)",
        "mf.AUCAccumulator().update(scores, labels)",
    ],
)
def test_signals_are_looked_for_while_the_area_is_computed(call: str) -> None:
    code = f"""
    import signal, time
    scores = np.random.default_rng(0).random(12_000_000)
    labels = scores < np.random.default_rng(1).random(12_000_000)
    handled = []
    signal.signal(signal.SIGALRM, lambda *_: handled.append(time.perf_counter()))
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    {call}
    middle = (start + time.perf_counter()) / 2
    print(len(handled) == 1 and handled[0] < middle)
    """
    assert python(code, MILFAST_NUM_THREADS="1") == "True"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("place", ["__array__", "__float__", "device"])
def test_an_interrupt_inside_an_argument_is_passed_on(stop: type[BaseException], place: str) -> None:
    def stopping(self: object, *_: object, **__: object) -> float:
        raise stop

    wrapped = property(stopping) if place == "device" else stopping
    argument: object = type("Argument", (), {place: wrapped})()
    if place == "__float__":
        argument = [argument, 1.0]
    with pytest.raises(stop):
        mf.auc(argument, [0, 1])  # type: ignore[arg-type]
    with pytest.raises(stop):
        mf.auc([0.1, 0.2], argument)  # type: ignore[arg-type]


@pytest.mark.parametrize("offsets", [[0, 2**63 - 1, -2, 3], [0, 2, 1, 3], [], [0], [1, 3], [0, 4], [-(2**63), 3]])
def test_offsets_out_of_order_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must ascend from 0"):
        bag_kernel(np.zeros((3, 2)), np.array(offsets, np.int64), gamma=1.0)


# ---------------------------------------------------------------- several Python threads


def test_kernels_called_from_several_threads_give_the_right_results() -> None:
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((8, 70_000))
    labels = rng.integers(0, 2, 70_000)
    x = rng.standard_normal((8, 150, 12))
    want = [(mf.auc(s, labels), mf.rbf_gram(a, gamma=0.1).tobytes()) for s, a in zip(scores, x, strict=True)]

    def work(i: int) -> bool:
        mf.set_num_threads(1 + i % 3)  # a pool may be replaced while another thread works on it
        i %= 8
        return (mf.auc(scores[i], labels), mf.rbf_gram(x[i], gamma=0.1).tobytes()) == want[i]

    before = mf.get_num_threads()
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(work, range(48)))
    finally:
        mf.set_num_threads(before)


def kernels_without_the_gil() -> dict[str, object]:
    rng = np.random.default_rng(3)
    scores, labels = rng.standard_normal(3_600_000), rng.integers(0, 2, 3_600_000)
    x = rng.standard_normal((500, 900))
    bags = mf.Bags(x, np.arange(0, 501, 5))
    errors = rng.random((1500, 4000)) < 0.3
    return {
        "auc": lambda: mf.auc(scores, labels),
        "weighted": lambda: mf.auc(scores[:900_000], labels[:900_000], sample_weight=np.ones(900_000)),
        "auc_many": lambda: mf.auc_many(scores.reshape(3600, 1000), labels[:1000]),
        "rbf_gram": lambda: mf.rbf_gram(x, gamma=1e-3),
        "bag_gram": lambda: mf.bag_gram(bags, gamma=1e-3),
        "sample_bags": lambda: mf.sample_bags("presence", 20_000, random_state=0),
        "jaccard": lambda: mf.jaccard_matrix(errors),
    }


@pytest.mark.parametrize("kernel", ["auc", "weighted", "auc_many", "rbf_gram", "bag_gram", "sample_bags", "jaccard"])
def test_other_threads_run_while_a_kernel_works(kernel: str) -> None:
    call = kernels_without_the_gil()[kernel]
    assert callable(call)
    inside, done = threading.Event(), threading.Event()
    steps_inside = 0

    def count() -> None:
        nonlocal steps_inside
        inside.wait()
        while not done.is_set():
            steps_inside += 1
            time.sleep(0)  # offers the GIL, and needs it back for the next step

    # Without a switch by the interpreter, only a kernel that gives the GIL away lets the counter run. It counts
    # many steps in one call or, where other programs hold the processors, in one of several: a kernel that keeps
    # the GIL lets it take a step or two in every call (NumPy gives it away while it copies).
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    counter = threading.Thread(target=count)
    counter.start()
    most = 0
    try:
        inside.set()
        for _ in range(30):
            before = steps_inside
            call()
            most = max(most, steps_inside - before)
            if most > 10:
                break
    finally:
        done.set()
        sys.setswitchinterval(interval)
        counter.join()
    assert most > 10


# ---------------------------------------------------------------- import


def test_importing_milfast_imports_nothing_heavy() -> None:
    heavy = ("torch", "sklearn", "scipy", "pandas", "polars", "joblib", "rich", "matplotlib")
    code = f"import sys; print([name for name in {heavy} if name in sys.modules])"
    assert python(code) == "[]"


def test_the_kernels_import_nothing_heavy_when_called() -> None:
    code = """
    import sys
    mf.auc([0.1, 0.2], [0, 1]), mf.auc(np.ones(2), ["a", "b"], pos_label="a"), mf.auc_many([[1, 2]], [0, 1])
    mf.rbf_gram([[0.0]], gamma=1.0), mf.bag_gram(mf.Bags([[0.0]], [0, 1]), gamma=1.0)
    print([name for name in ("torch", "sklearn", "scipy", "pandas", "joblib", "rich") if name in sys.modules])
    """
    assert python(code) == "[]"


def test_everything_announced_can_be_had() -> None:
    code = """
    print([name for name in mf.__all__ if not hasattr(mf, name) or name not in dir(mf)])
    try:
        mf.absent
    except AttributeError as error:
        print(error)
    """
    assert python(code) == "[]\nmodule 'milfast' has no attribute 'absent'"
