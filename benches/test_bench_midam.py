"""A step of MIDAM: the time of one model and step among 45 that are trained at once, beside a pass for each bag.

Times are for one model and one step of 16 bags with 4 instances of each; those of milfast are a whole call of
`fit_stacked` with its set-up and one scoring of all bags, those of the peers are steps alone.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from milfast.training.bag_sampler import BalancedBagSampler  # noqa: E402
from milfast.training.stacked import fit_stacked  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS, FOLDS, MARGINS, EPOCHS = 3, 5, (0.1, 0.5, 1.0), 10
TAU, GAMMA = 0.1, 0.9
modes = pytest.mark.parametrize("mode", ["smx", "att"])


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bags() -> mf.Bags:
    """As many bags of as many features as MUSK2 has, with sizes as uneven."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(1, rng.lognormal(2.5, 1.6, 102).astype(int)).clip(max=1044)
    labels = np.arange(102) < 39
    instances = rng.normal(size=(int(sizes.sum()), 166)) + 0.3 * np.repeat(labels, sizes)[:, None]
    return mf.Bags(instances.astype(np.float32), np.concatenate(([0], np.cumsum(sizes))), labels)


class Scorer(nn.Module):
    """What LibAUC calls FFNN and FFNN_stoc_att."""

    def __init__(self, width: int, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.first, self.score = nn.Linear(width, width), nn.Linear(width, 1)
        if mode == "att":
            self.value, self.says = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> Any:
        hidden = torch.tanh(self.first(x))
        if self.mode == "smx":
            return torch.sigmoid(self.score(hidden))
        return self.score(hidden), torch.exp(self.says(torch.tanh(self.value(hidden))))


def by_bags(bags: mf.Bags, mode: str, n_epochs: int) -> int:
    """The formulas as one writes them down: a forward pass for each bag of a batch. Returns the number of steps."""
    torch.manual_seed(0)
    model, parts = Scorer(166, mode), [torch.tensor(bag) for bag in bags]
    labels = torch.tensor(bags.labels)
    a, b = (torch.zeros(1, requires_grad=True) for _ in range(2))
    alpha = torch.zeros(1)
    s1, s2 = torch.zeros(102, 1) + (mode == "att"), torch.ones(102, 1)
    optimizer = torch.optim.SGD([*model.parameters(), a, b], lr=0.01, momentum=0.1, dampening=0.1, weight_decay=1e-4)
    sampler = BalancedBagSampler(bags.labels, 16, random_state=0)
    n_steps = 0
    for epoch in range(n_epochs):
        for batch in sampler.batches(epoch):
            made = []
            for bag in batch:
                drawn = parts[bag][torch.randperm(len(parts[bag]))[:4]]
                found = model(drawn)
                if mode == "smx":
                    made.append(torch.exp(found / TAU).mean(0))
                else:
                    made.append(torch.cat(((found[0] * found[1]).mean(0), found[1].mean(0))))
            values = torch.stack(made)
            index = torch.tensor(batch)
            above = labels[index] == 1
            if mode == "smx":
                s1[index] = (1 - GAMMA) * s1[index] + GAMMA * values.detach()
                held = s1[index]
                h, moved = TAU * held.log(), TAU * values / held
            else:
                numerator, denominator = values[:, :1], values[:, 1:]
                s1[index] = (1 - GAMMA) * s1[index] + GAMMA * numerator.detach()
                s2[index] = (1 - GAMMA) * s2[index] + GAMMA * denominator.detach()
                one, two = s1[index], s2[index].clamp(min=1e-8)
                h = torch.sigmoid(one / two)
                moved = h * (1 - h) * (numerator / two - one / two**2 * denominator)
            loss = (2 * (h[above] - a.detach()) * moved[above]).mean()
            loss = loss + (2 * (h[~above] - b.detach()) * moved[~above]).mean()
            loss = loss + (alpha * (moved[~above].mean() - moved[above].mean())).sum()
            loss = loss + ((h[above] - a) ** 2).mean() + ((h[~above] - b) ** 2).mean()
            alpha = (1.0 + h[~above].mean() - h[above].mean()).clamp(min=0).reshape(1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n_steps += 1
    return n_steps


def by_libauc(bags: mf.Bags, mode: str, n_epochs: int) -> int:
    """The loop of LibAUC's tutorial on tables."""
    from libauc.losses import MIDAMLoss
    from libauc.models import FFNN, FFNN_stoc_att
    from libauc.optimizers import MIDAM
    from libauc.sampler import DualSampler
    from libauc.utils import MIL_sampling, collate_fn

    # not the data set of LibAUC, which needs other packages
    class Data(torch.utils.data.Dataset):
        def __init__(self) -> None:
            self.bags = [np.asarray(bag, dtype=np.float32) for bag in bags]
            self.targets = np.asarray(bags.labels)

        def __len__(self) -> int:
            return len(self.bags)

        def __getitem__(self, index: int) -> Any:
            return self.bags[index], self.targets[index], index

    torch.manual_seed(0)
    data = Data()
    sampler = DualSampler(data, batch_size=16, sampling_rate=0.5)
    loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler, collate_fn=collate_fn)
    shape = {"num_classes": 1, "input_dim": 166, "hidden_sizes": (166,)}
    model: Any = FFNN(last_activation="sigmoid", **shape) if mode == "smx" else FFNN_stoc_att(**shape)
    loss_fn = MIDAMLoss(mode="softmax" if mode == "smx" else "attention", data_len=len(data), device="cpu")
    optimizer = MIDAM(model.parameters(), loss_fn=loss_fn, lr=0.01, weight_decay=1e-4, momentum=0.1, device="cpu")
    n_steps = 0
    for _ in range(n_epochs):
        for drawn, labels, index in loader:
            how = "exp" if mode == "smx" else "att"
            made = [MIL_sampling(bag_X=bag, model=model, instance_batch_size=4, mode=how) for bag in drawn]
            y_pred = torch.cat(made) if mode == "smx" else tuple(torch.cat([pair[i] for pair in made]) for i in (0, 1))
            loss = loss_fn(
                y_pred=y_pred, y_true=torch.as_tensor(np.asarray(labels)), index=torch.as_tensor(np.asarray(index))
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n_steps += 1
    return n_steps


def beside(race: Any, name: str, bags: mf.Bags, mode: str, peer_name: str, peer: Callable[[int], int]) -> None:
    folds = [f for seed in range(SEEDS) for f in np.array_split(np.random.default_rng(seed).permutation(102), FOLDS)]
    train = [np.setdiff1d(np.arange(102), fold) for fold in folds for _ in MARGINS]
    steps = [len(BalancedBagSampler(bags.labels, 16, bags=part)) * EPOCHS for part in train]

    def ours() -> object:
        return fit_stacked(
            bags,
            None,
            train,
            method=f"midam-{mode}",
            margins=list(MARGINS) * FOLDS * SEEDS,
            epochs=EPOCHS,
            evaluate_every=None,
        )

    ours(), peer(1)
    times: list[tuple[float, float]] = []
    for _ in range(3):
        # of the processor: a call takes seconds, in which other programs have their turns too
        start = time.process_time()
        ours()
        middle = time.process_time()
        n_steps = peer(4)
        times.append(((middle - start) / sum(steps), (time.process_time() - middle) / n_steps))
    best = [min(column) for column in zip(*times, strict=True)]
    race.record(name, best[0], peer_name, best[1])


@modes
def test_a_model_and_step_beside_a_pass_for_each_bag(race, bags, mode) -> None:
    beside(race, f"midam_{mode}_step", bags, mode, "pass per bag", partial(by_bags, bags, mode))


@modes
def test_a_model_and_step_beside_libauc(race, bags, mode) -> None:
    pytest.importorskip("libauc.models", reason="LibAUC is not installed")
    beside(race, f"midam_{mode}_step_libauc", bags, mode, "LibAUC", partial(by_libauc, bags, mode))
