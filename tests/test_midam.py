"""The losses and the optimiser of MIDAM: what they compute, and what their state survives."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from milfast.training.instance_sampler import sample_instances  # noqa: E402
from milfast.training.midam import AUCMarginLoss, MIDAMAttLoss, MIDAMOptimizer, MIDAMSmxLoss  # noqa: E402

SIZES = [3, 1, 5, 2, 4, 5]
LABELS = torch.tensor([1, 0, 1, 0, 0, 1])
MASK = torch.arange(5) < torch.tensor(SIZES)[:, None]
INDEX = torch.tensor([4, 0, 7, 2, 9, 5])
POOLINGS = ["smx", "att"]
both = pytest.mark.parametrize("pooling", POOLINGS)


class Network(nn.Module):
    """Scores and attention of padded instances, in double precision."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.score, self.says = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
        self.double()

    def forward(self, x: Any) -> Any:
        hidden = self.first(x).tanh()
        return self.score(hidden).squeeze(-1), self.says(hidden).squeeze(-1)


@pytest.fixture(autouse=True)
def _own_chance() -> Any:
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


def make(pooling: str, n_bags: int = 10, **settings: Any) -> Any:
    return {"smx": MIDAMSmxLoss, "att": MIDAMAttLoss}[pooling](n_bags, **settings)


def instances(seed: int = 1) -> Any:
    return torch.randn(6, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def value_of(
    loss: Any, pooling: str, network: Any, x: Any, labels: Any = LABELS, index: Any = INDEX, mask: Any = MASK
) -> Any:
    scores, says = network(x)
    given = (scores.sigmoid(),) if pooling == "smx" else (scores, says)
    return loss(*given, labels, index, mask)


def full_scores(pooling: str, network: Any, x: Any, tau: float = 0.1) -> Any:
    """Scores of bags by the definition, bag by bag, from all instances."""
    scores, says = network(x)
    found = []
    for row, size in enumerate(SIZES):
        s, g = scores[row, :size], says[row, :size]
        if pooling == "smx":
            found.append(tau * (s.sigmoid() / tau).exp().mean().log())
        else:
            found.append(((g.exp() * s).sum() / g.exp().sum()).sigmoid())
    return torch.stack(found)


def f_of(h: Any, labels: Any, a: Any, b: Any, alpha: Any, margin: float, weight: float = 1.0) -> Any:
    above, below = h[labels == 1], h[labels != 1]
    cross = alpha * (margin + below.mean() - above.mean()) - alpha**2 / 2
    return ((above - a) ** 2).mean() + ((below - b) ** 2).mean() + weight * cross


# ---------------------------------------------------------------- what is computed


@both
@pytest.mark.parametrize("rule", ["batch-max", "gradient"])
def test_with_all_instances_and_gamma_1_the_gradient_is_that_of_the_objective(pooling: str, rule: str) -> None:
    x, network = instances(), Network()
    loss = make(pooling, gamma=1.0, margin=0.8, alpha_rule=rule)
    with torch.no_grad():
        loss.a.fill_(0.3), loss.b.fill_(0.6), loss.alpha.fill_(0.7)
    value = value_of(loss, pooling, network, x)
    value.backward()
    found = [p.grad.clone() for p in (*network.parameters(), loss.a, loss.b) if p.grad is not None]
    network.zero_grad()
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.3, 0.6))
    objective = f_of(full_scores(pooling, network, x), LABELS, a, b, torch.tensor(0.7), 0.8)
    objective.backward()
    expected = [p.grad for p in (*network.parameters(), a, b) if p.grad is not None]
    assert len(found) == len(expected) == (6 if pooling == "smx" else 8)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=1e-6)
    # the value is that of the objective too, here
    torch.testing.assert_close(value.detach(), objective.detach(), rtol=0, atol=1e-6)


@both
@pytest.mark.parametrize("state", ["current", "previous"])
def test_several_steps_are_those_of_the_formulas(pooling: str, state: str) -> None:
    """Moving averages as they are written down, without logarithms, and gradients by automatic differentiation."""
    gamma, tau, margin = 0.6, 0.2, 1.0
    settings = {"tau": tau} if pooling == "smx" else {}
    loss = make(pooling, gamma=gamma, margin=margin, gradient_state=state, **settings)
    network = Network()
    s = torch.zeros(10, dtype=torch.float64)
    s1, s2 = torch.ones(10, dtype=torch.float64), torch.ones(10, dtype=torch.float64)
    alpha = 0.0
    for step in range(4):
        x = instances(step)
        network.zero_grad()
        loss.a.grad = loss.b.grad = None
        value_of(loss, pooling, network, x).backward()
        found = [p.grad.clone() for p in network.parameters() if p.grad is not None]
        network.zero_grad()
        scores, says = network(x)
        surrogate, h = [], []
        for row, bag in enumerate(INDEX.tolist()):
            phi, g = scores[row, : SIZES[row]], says[row, : SIZES[row]]
            if pooling == "smx":
                f1 = (phi.sigmoid() / tau).exp().mean()
                new = (1 - gamma) * s[bag] + gamma * f1.detach()
                used = new if state == "current" or s[bag] == 0 else s[bag].clone()
                h.append(tau * used.log())
                surrogate.append(tau * f1 / used)
                s[bag] = new
            else:
                n, d = (g.exp() * phi).mean(), g.exp().mean()
                new1 = (1 - gamma) * s1[bag] + gamma * n.detach()
                new2 = (1 - gamma) * s2[bag] + gamma * d.detach()
                used1, used2 = (new1, new2) if state == "current" else (s1[bag].clone(), s2[bag].clone())
                sigmoid = (used1 / used2).sigmoid()
                h.append(sigmoid)
                surrogate.append(sigmoid * (1 - sigmoid) * (n / used2 - used1 * d / used2**2))
                s1[bag], s2[bag] = new1, new2
        scores_of, of = torch.stack(h), torch.stack(surrogate)
        above = LABELS == 1
        total = (2 * (scores_of[above] - loss.a.item()) * of[above]).mean()
        total = total + (2 * (scores_of[~above] - loss.b.item()) * of[~above]).mean()
        total = total + alpha * (of[~above].mean() - of[above].mean())
        total.backward()
        expected = [p.grad for p in network.parameters() if p.grad is not None]
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-7)
        # of the rule "batch-max" with a share of 1
        alpha = max(0.0, margin + float(scores_of[~above].mean() - scores_of[above].mean()))
        assert loss.alpha.item() == pytest.approx(alpha, abs=1e-6)
        assert loss.a.grad.item() == pytest.approx(-2 * float((scores_of[above] - loss.a.item()).mean()), abs=1e-6)
        with torch.no_grad():
            loss.a.add_(0.1)


@both
def test_closed_forms_are_the_saddle_point(pooling: str) -> None:
    h = full_scores(pooling, Network(), instances()).detach()
    loss = make(pooling, margin=0.9)
    above, below = h[LABELS == 1], h[LABELS == 0]
    gap = max(0.0, 0.9 + float(below.mean() - above.mean()))
    expected = float(above.var(correction=0) + below.var(correction=0)) + gap**2 / 2
    assert loss.objective(h, LABELS).item() == pytest.approx(expected, abs=1e-12)
    a, b, alpha = float(above.mean()), float(below.mean()), gap

    def at(a: float, b: float, alpha: float) -> float:
        with torch.no_grad():
            loss.double()
            loss.a.fill_(a), loss.b.fill_(b), loss.alpha.fill_(alpha)
        return float(loss.objective(h, LABELS, best=False))

    assert at(a, b, alpha) == pytest.approx(expected, abs=1e-12)
    for step in (-0.1, 0.1):
        assert at(a + step, b, alpha) > expected
        assert at(a, b + step, alpha) > expected
        assert at(a, b, max(0.0, alpha + step)) < expected
    # the one that an optimiser of a and b alone arrives at
    torch.testing.assert_close(loss.objective(h, LABELS * 2 - 1), loss.objective(h, LABELS))


def test_auc_m_is_the_loss_with_twice_the_weight() -> None:
    h = torch.tensor([0.9, 0.2, 0.4, 0.1, 0.3, 0.8], dtype=torch.float64, requires_grad=True)
    loss = AUCMarginLoss(margin=1.0).double()
    with torch.no_grad():
        loss.a.fill_(0.3), loss.b.fill_(0.6), loss.alpha.fill_(0.7)
    loss(h, LABELS).backward()
    again = h.detach().clone().requires_grad_()
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.3, 0.6))
    # 2 alpha (...) - alpha^2
    f_of(again, LABELS, a, b, torch.tensor(0.7, dtype=torch.float64), 1.0, weight=2.0).backward()
    for one, other in ((h, again), (loss.a, a), (loss.b, b)):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-12)
    assert loss.alpha.item() == 0.7  # it follows its gradient when the optimiser steps
    MIDAMOptimizer([], loss, lr=0.1, weight_decay=0.0, momentum=0.0).step()
    a, b = loss.a.item(), loss.b.item()
    assert loss.alpha.item() == pytest.approx(0.7 + 0.1 * 2 * (1 + b - a - 0.7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("state", ["current", "previous"])
def test_a_small_tau_and_scores_of_any_size_are_finite(dtype: Any, state: str) -> None:
    loss = MIDAMSmxLoss(4, tau=1e-3, gamma=0.5, gradient_state=state)
    labels, index = torch.tensor([1, 1, 0, 0]), torch.arange(4)
    for step in range(5):
        size = 1e4 * (1 if step % 2 else -1)
        scores = torch.tensor([[size, -size], [size, size], [-size, 0.0], [0.0, 1e-3]], dtype=dtype)
        scores.requires_grad_()
        value = loss(scores, labels, index)
        value.backward()
        assert value.isfinite()
        assert scores.grad.isfinite().all()
        assert loss.log_s.isfinite().all()
    exact = MIDAMSmxLoss(4, tau=1e-3, gamma=1.0)
    exact(torch.tensor([[1e4, -1e4], [5.0, 5.0], [-1e4, -1e4], [0.0, 1e-3]], dtype=dtype), labels, index)
    expected = [1e4 - 1e-3 * np.log(2), 5.0, -1e4, 1e-3 * np.log((1 + np.e) / 2)]
    np.testing.assert_allclose(exact.tau * exact.log_s, expected, rtol=1e-7 if dtype == torch.float32 else 1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_of_any_size_is_finite_and_right(dtype: Any) -> None:
    loss = MIDAMAttLoss(2, gamma=1.0)
    delta = torch.tensor([[2.0, -1.0], [0.5, 1.5]], dtype=dtype, requires_grad=True)
    says = torch.tensor([[1e4, -1e4], [-1e4, -1e4]], dtype=dtype, requires_grad=True)
    value = loss(delta, says, torch.tensor([1, 0]), torch.arange(2))
    value.backward()
    np.testing.assert_allclose(loss.ratio, [2.0, 1.0], rtol=1e-12)
    assert delta.grad.isfinite().all()
    assert says.grad.isfinite().all()
    assert delta.grad[0, 1] == 0 != delta.grad[0, 0]


@both
def test_the_order_of_instances_and_of_bags_means_nothing(pooling: str) -> None:
    network, x = Network(), instances()
    first, second = make(pooling), make(pooling)
    value = value_of(first, pooling, network, x)
    value.backward()
    before = network.first.weight.grad.clone()
    network.zero_grad()
    bags = torch.tensor([3, 5, 0, 1, 4, 2])
    mixed, mask = x.clone(), MASK.clone()
    for row in range(6):
        order = torch.randperm(5)
        mixed[row], mask[row] = x[row, order], MASK[row, order]
    again = value_of(second, pooling, network, mixed[bags], LABELS[bags], INDEX[bags], mask[bags])
    again.backward()
    torch.testing.assert_close(again, value, rtol=0, atol=1e-12)
    torch.testing.assert_close(network.first.weight.grad, before, rtol=0, atol=1e-12)
    for name, held in first.named_buffers():
        torch.testing.assert_close(second.get_buffer(name), held, rtol=0, atol=1e-7)


def test_what_is_masked_does_not_count() -> None:
    x, network = instances(), Network()
    other = x.masked_fill(~MASK[..., None], 1e3)
    for pooling in POOLINGS:
        values = [value_of(make(pooling), pooling, network, given) for given in (x, other)]
        assert torch.equal(*values)


def test_estimators_of_the_drawn_instances_are_unbiased() -> None:
    rng = np.random.default_rng(0)
    phi, g = rng.normal(size=9), rng.normal(size=9)
    full = [np.exp(phi / 0.5).mean(), (np.exp(g) * phi).mean(), np.exp(g).mean()]
    n_draws = 40_000
    rows, mask = sample_instances([0, 9], np.zeros(n_draws, dtype=int), 4, np.random.default_rng(1))
    assert mask.all()
    for values, expected in zip((np.exp(phi / 0.5), np.exp(g) * phi, np.exp(g)), full, strict=True):
        drawn = values[rows].mean(axis=1)
        # exact: the mean over all subsets is the mean of the bag
        subsets = np.mean([values[list(chosen)].mean() for chosen in itertools.combinations(range(9), 4)])
        assert subsets == pytest.approx(expected, rel=1e-12)
        assert abs(drawn.mean() - expected) < 5 * drawn.std() / np.sqrt(n_draws)


# ---------------------------------------------------------------- state


@both
def test_all_state_is_in_the_state_dict_and_moves(pooling: str) -> None:
    loss, network = make(pooling, margin=0.5, gamma=0.8), Network()
    value_of(loss, pooling, network, instances()).backward()
    loss.update_smoothing(2.0)
    assert {"a", "b", "alpha", "_margin", "_gamma", "_eta"} <= set(loss.state_dict())
    fresh = make(pooling)
    fresh.load_state_dict(loss.state_dict())
    assert (fresh.margin, fresh.gamma, fresh.eta) == (0.5, 0.4, 0.5)
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    buffer.seek(0)
    kept = torch.load(buffer, weights_only=True)
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), fresh):
        for name, held in kept.items():
            assert torch.equal(again.state_dict()[name], held), name
    averages = {name for name, _ in loss.named_buffers() if name[0] != "_"} - {"alpha"}
    assert averages == ({"log_s"} if pooling == "smx" else {"log_s2", "ratio"})
    assert len(list(loss.parameters())) == 2
    assert {held.device.type for held in copy.deepcopy(loss).to("meta").state_dict().values()} == {"meta"}
    single = copy.deepcopy(loss).float()
    assert {held.dtype for held in single.state_dict().values()} == {torch.float32}
    assert value_of(single, pooling, network, instances()).isfinite()


@both
@pytest.mark.parametrize("rule", ["batch-max", "gradient"])
def test_training_goes_on_from_what_was_kept_to_the_same_bits(pooling: str, rule: str) -> None:
    def start() -> tuple[Any, Any, Any]:
        network, loss = Network(), make(pooling, alpha_rule=rule)
        return network, loss, MIDAMOptimizer(network.parameters(), loss, lr=0.05)

    def steps(parts: tuple[Any, Any, Any], numbers: range) -> None:
        network, loss, optimizer = parts
        for number in numbers:
            optimizer.zero_grad()
            value_of(loss, pooling, network, instances(number)).backward()
            optimizer.step()
            if number == 2:
                optimizer.update_lr()
                loss.update_smoothing()

    whole = start()
    steps(whole, range(6))
    half = start()
    steps(half, range(3))
    buffer = io.BytesIO()
    torch.save([part.state_dict() for part in half], buffer)
    buffer.seek(0)
    resumed = start()
    for part, kept in zip(resumed, torch.load(buffer, weights_only=True), strict=True):
        part.load_state_dict(kept)
    steps(resumed, range(3, 6))
    copied = copy.deepcopy(half)
    steps(copied, range(3, 6))
    pickled = pickle.loads(pickle.dumps(half))
    steps(pickled, range(3, 6))
    for parts in (resumed, copied, pickled):
        for one, other in zip(parts[:2], whole[:2], strict=True):
            for name, held in other.state_dict().items():
                assert torch.equal(one.state_dict()[name], held), name
        assert parts[2].param_groups[0]["lr"] == whole[2].param_groups[0]["lr"] == 0.05 / 10


def test_an_optimiser_copied_by_itself_keeps_its_loss() -> None:
    loss = MIDAMSmxLoss(3, alpha_rule="gradient")
    optimizer = MIDAMOptimizer([nn.Parameter(torch.zeros(2))], loss)
    for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert isinstance(again.loss, MIDAMSmxLoss)
        again.step()
        assert again.loss.alpha.item() > 0
    assert loss.alpha.item() == 0


@both
def test_a_margin_set_later_counts(pooling: str) -> None:
    network, x = Network(), instances()
    early, late = make(pooling, margin=0.2), make(pooling, margin=1.0)
    late.margin = 0.2
    for loss in (early, late):
        for _ in range(2):
            value_of(loss, pooling, network, x)
    assert late.margin == 0.2
    assert early.alpha.item() == late.alpha.item() != 0
    late.alpha_rule = early.alpha_rule = "gradient"
    late.margin = 3.0
    early.ascend(0.1), late.ascend(0.1)
    assert late.alpha.item() == pytest.approx(early.alpha.item() + 0.1 * 2.8)


@both
def test_smoothing_is_made_stronger(pooling: str) -> None:
    loss = make(pooling, gamma=0.8)
    loss.update_smoothing(4.0)
    assert (loss.gamma, loss.eta) == (0.2, 0.25)
    network = Network()
    before = loss.alpha.item()
    h = full_scores(pooling, network, instances()).detach()
    loss.gamma = 1.0
    value_of(loss, pooling, network, instances())
    gap = 1.0 + float(h[LABELS == 0].mean() - h[LABELS == 1].mean())
    assert loss.alpha.item() == pytest.approx(before + 0.25 * gap, abs=1e-6)


# ---------------------------------------------------------------- what is refused


@both
@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_class(pooling: str, label: int) -> None:
    network, labels = Network(), torch.full((6,), label)
    loss = make(pooling)
    before = copy.deepcopy(loss.state_dict())
    with pytest.raises(ValueError, match=f"all 6 bags of the batch are {['negative', 'positive'][label]}"):
        value_of(loss, pooling, network, instances(), labels)
    assert all(torch.equal(loss.state_dict()[name], held) for name, held in before.items())

    partial = make(pooling, one_class="partial", gamma=1.0)
    with torch.no_grad():
        partial.alpha.fill_(0.4), partial.a.fill_(0.2), partial.b.fill_(0.2)
    value = value_of(partial, pooling, network, instances(), labels)
    value.backward()
    h = full_scores(pooling, network, instances()).detach()
    assert value.item() == pytest.approx(float(((h - 0.2) ** 2).mean()), abs=1e-6)
    assert partial.alpha.item() == pytest.approx(0.4)
    assert (partial.a.grad.item() != 0, partial.b.grad.item() != 0) == (label == 1, label == 0)
    with pytest.raises(ValueError, match="both classes"):
        partial.objective(h, labels)


@both
def test_arguments_that_cannot_be_used(pooling: str) -> None:
    for setting, wrong in {
        "alpha_rule": "newton",
        "gradient_state": "next",
        "one_class": "skip",
        "gamma": 1.5,
        "margin": -1.0,
        "eta": 0.0,
        "n_bags": 0,
    }.items():
        with pytest.raises(ValueError, match=setting):
            make(pooling, **{setting: wrong})
    loss = make(pooling)
    for setting in ("margin", "gamma", "eta"):
        with pytest.raises(ValueError, match=setting):
            setattr(loss, setting, float("nan"))
    with pytest.raises(ValueError, match="factor"):
        loss.update_smoothing(0.0)
    scores = torch.zeros(2, 3)
    given = (scores,) if pooling == "smx" else (scores, scores)
    labels, index = torch.tensor([1, 0]), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="bag 1 is in the batch 2 times"):
        loss(*given, labels, torch.tensor([1, 1]))
    with pytest.raises(IndexError, match="of 10 bags"):
        loss(*given, labels, torch.tensor([0, 10]))
    with pytest.raises(ValueError, match="index must be integers"):
        loss(*given, labels, torch.zeros(2))
    with pytest.raises(ValueError, match="labels must have shape"):
        loss(*given, torch.zeros(3), index)
    with pytest.raises(ValueError, match="mask must have the shape"):
        loss(*given, labels, index, torch.ones(2, 2, dtype=torch.bool))
    mask = torch.ones(2, 3, dtype=torch.bool)
    mask[1] = False
    with pytest.raises(ValueError, match="bag 1 of the batch has no instance"):
        loss(*given, labels, index, mask)
    with pytest.raises(ValueError, match=r"shape \(n_bags, n_sampled\)"):
        loss(*(g[0] for g in given), labels, index)
    with pytest.raises(ValueError, match="index must be integers"):
        loss(*given, labels, index > 0)
    with pytest.raises(ValueError, match="mask must be bool"):
        loss(*given, labels, index, torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"labels\[1\] is NaN"):
        loss(*given, torch.tensor([1.0, torch.nan]), index)
    with pytest.raises(TypeError, match="margin must be a number; got None"):
        make(pooling, margin=None)
    assert loss(*given, [1, -1], np.array([0, 1])) == make(pooling)(*given, labels, index.to(torch.uint8))


@both
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_a_score_that_is_no_number_leaves_the_averages_alone(pooling: str, wrong: float) -> None:
    loss, mask = make(pooling), torch.tensor([[True, True], [True, False]])
    before = copy.deepcopy(loss.state_dict())
    scores = torch.tensor([[0.5, wrong], [0.5, 0.5]])
    rest = torch.tensor([1, 0]), torch.tensor([0, 1]), mask
    with pytest.raises(ValueError, match=r"scores\[0, 1\] is .*: training has gone astray"):
        loss(*(scores,) * (1 if pooling == "smx" else 2), *rest)
    if pooling == "att":
        with pytest.raises(ValueError, match=r"says\[0, 1\] is "):
            loss(torch.zeros(2, 2), scores, *rest)
    assert all(torch.equal(loss.state_dict()[name], held) for name, held in before.items())
    # what fills up may be anything
    scores[0, 1], scores[1, 1] = 0.5, wrong
    assert loss(*(scores,) * (1 if pooling == "smx" else 2), *rest).isfinite()


def test_auc_m_takes_one_score_a_bag() -> None:
    loss, labels = AUCMarginLoss(), torch.tensor([1, 0])
    for scores in (torch.ones(2, 1), torch.ones(())):
        with pytest.raises(ValueError, match=r"scores must have shape \(n_bags,\) of a batch"):
            loss(scores, labels)
    with pytest.raises(ValueError, match="scores must have shape"):
        loss(torch.ones(0), labels[:0])
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        loss(torch.tensor([0.0, torch.nan]), labels)
    assert loss.alpha == 0


@both
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_settings_and_averages_keep_their_digits_when_a_network_goes_to_16_bits(pooling: str, dtype: Any) -> None:
    loss = make(pooling, margin=0.1, **({"tau": 1e-3} if pooling == "smx" else {}))
    holder = nn.ModuleDict({"network": nn.Linear(2, 1), "loss": loss}).to(dtype)
    assert holder["network"].weight.dtype == loss.a.dtype == dtype
    assert loss.margin == 0.1
    scores = torch.full((2, 3), 100.0, dtype=dtype, requires_grad=True)
    value = loss(*(scores,) * (1 if pooling == "smx" else 2), torch.tensor([1, 0]), torch.tensor([0, 1]))
    value.backward()
    assert value.isfinite()
    assert scores.grad.isfinite().all()
    if pooling == "smx":
        assert loss.log_s[0].item() == pytest.approx(100 / 1e-3 + np.log(0.9), rel=1e-12)


def test_tau_must_be_above_0_and_attention_of_one_shape() -> None:
    with pytest.raises(ValueError, match="tau"):
        MIDAMSmxLoss(2, tau=0.0)
    with pytest.raises(ValueError, match="says must have the shape"):
        MIDAMAttLoss(2)(torch.zeros(2, 3), torch.zeros(2, 2), torch.tensor([1, 0]), torch.arange(2))


def test_labels_of_minus_one_and_one() -> None:
    network, x = Network(), instances()
    values = [value_of(make("smx"), "smx", network, x, labels) for labels in (LABELS, 2 * LABELS - 1, LABELS == 1)]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


# ---------------------------------------------------------------- optimiser


def test_steps_are_moving_averages_that_begin_with_the_gradient() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = MIDAMOptimizer([parameter], lr=0.1, momentum=0.3, weight_decay=0.5)
    w, v = np.array([1.0, -2.0]), None
    for step in range(4):
        gradient = np.array([step + 1.0, 2.0])
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        g = gradient + 0.5 * w
        v = g if v is None else 0.3 * v + 0.7 * g
        w = w - 0.1 * v
        np.testing.assert_allclose(parameter.detach(), w, rtol=1e-12)


def test_a_and_b_decay_or_do_not() -> None:
    for decays in (True, False):
        loss = MIDAMSmxLoss(2)
        with torch.no_grad():
            loss.a.fill_(1.0)
        loss.a.grad = torch.zeros(())
        MIDAMOptimizer([], loss, lr=0.1, weight_decay=0.5, decay_auxiliary=decays).step()
        assert loss.a.item() == pytest.approx(0.95 if decays else 1.0)


def test_gradients_are_clamped_before_decay() -> None:
    parameter = nn.Parameter(torch.tensor([2.0]))
    parameter.grad = torch.tensor([5.0])
    MIDAMOptimizer([parameter], lr=0.1, momentum=0.0, weight_decay=0.5, clip_value=1.0).step()
    assert parameter.item() == pytest.approx(2.0 - 0.1 * (1.0 + 0.5 * 2.0))


def test_the_optimiser_works_with_any_network_schedules_and_closures() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(1))
    network(torch.zeros(1, 1, 5, 5))
    optimizer = MIDAMOptimizer([{"params": network[0].parameters(), "lr": 0.02}, {"params": network[2].parameters()}])
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.01]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1], gamma=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = network(torch.ones(1, 1, 5, 5)).square().sum()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    schedule.step()
    assert optimizer.step(closure) < first
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.002)
    for wrong in ({"lr": 0.0}, {"momentum": 1.0}, {"weight_decay": -1.0}, {"clip_value": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            MIDAMOptimizer(network.parameters(), **wrong)
    with pytest.raises(TypeError, match="loss must be"):
        MIDAMOptimizer(network.parameters(), nn.Identity())
    with pytest.raises(ValueError, match="factor"):
        optimizer.update_lr(0.0)
