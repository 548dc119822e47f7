"""Time and memory of the SVM family by number of bags: python benches/svm_scaling.py [BAGS ...]

Every fit has a process of its own, so that its peak memory is its own too. The figures are those of one fit; on a busy
machine look at the processor time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

BAGS = (250, 500, 1000, 2000, 4000)

PROGRAM = """
import json, resource, sys, time
import milfast as mf
name, n = sys.argv[1], int(sys.argv[2])
unit = 1 if sys.platform == "darwin" else 1024
def peak(): return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small = mf.sample_bags("presence", 20, random_state=0)
kind = mf.models.get(name)
kind(**kind.tested).fit(small).decision_function(small)   # what has to be imported is
bags = mf.sample_bags("presence", n, random_state=0)
test = mf.sample_bags("presence", 10_000, random_state=1)
before = peak()
clock, processor = time.perf_counter(), time.process_time()
model = kind(**kind.tested).fit(bags)
clock, processor = time.perf_counter() - clock, time.process_time() - processor
fitted = peak()
start = time.process_time()
scores = model.decision_function(test)
print(json.dumps({
    "model": name, "bags": n, "instances": bags.n_instances, "seconds": clock, "processor": processor,
    "bytes": fitted - before, "scoring": time.process_time() - start, "rounds": model.n_iter_,
    "converged": bool(model.converged_), "auc": mf.auc(scores, test.labels),
}))
"""


def measure(model: str, bags: int) -> dict[str, Any]:
    """One fit in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, model, str(bags)], check=True, capture_output=True, text=True
    )
    figures: dict[str, Any] = json.loads(ran.stdout)
    return figures


def main(sizes: list[int]) -> None:
    import milfast as mf

    print("| model | bags | instances | fit, s | processor, s | MB | scoring 10,000 bags, s | rounds | fresh AUC |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in mf.models.names("svm"):
        for n in sizes:
            f = measure(model, n)
            rounds = f"{f['rounds']}" + ("" if f["converged"] else " (stopped)")
            print(
                f"| {model} | {n:,} | {f['instances']:,} | {f['seconds']:.2f} | {f['processor']:.2f} | "
                f"{f['bytes'] / 1e6:.0f} | {f['scoring']:.2f} | {rounds} | {f['auc']:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or list(BAGS))
