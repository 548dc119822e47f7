"""Many models trained at once, and the estimators on the same footing."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone

import milfast as mf
from milfast.lazy_bags import LazyBags

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from milfast.seeding import seed_sequence, seed_value  # noqa: E402
from milfast.training import loop  # noqa: E402
from milfast.training.bag_sampler import BalancedBagSampler  # noqa: E402
from milfast.training.bag_scores import POOLINGS, InstanceNetwork, PooledNetwork, RunningPool  # noqa: E402
from milfast.training.instance_sampler import sample_instances  # noqa: E402
from milfast.training.midam import AUCMarginLoss, MIDAMAttLoss, MIDAMOptimizer, MIDAMSmxLoss  # noqa: E402
from milfast.training.stacked import METHODS, fit_stacked, score_bags  # noqa: E402
from milfast.training.stacks import stack_of  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["MIDAM-smx", "MIDAM-att", "AUC-M", "CE"]
each = pytest.mark.parametrize("method", METHODS)


def make_bags(n_bags: int = 40, seed: int = 0, most: int = 9, share: float = 0.5) -> mf.Bags:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, n_bags)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = (np.arange(n_bags) < share * n_bags).astype(int)
    instances = rng.normal(size=(offsets[-1], 4)) * [1, 5, 0.1, 1] + [0, 100, 0, 0]
    instances[offsets[:-1][labels == 1], 1] += 15
    return mf.Bags(instances, offsets, labels)


def halves(n_bags: int = 40) -> list[np.ndarray]:
    return [np.flatnonzero(np.arange(n_bags) % 2 == fold) for fold in (0, 1)]


# ---------------------------------------------------------------- networks side by side


@pytest.mark.parametrize("attends", [False, True])
def test_the_written_gradient_is_that_of_automatic_differentiation(attends: bool) -> None:
    with loop.seeded(0):
        networks = [InstanceNetwork(3, 5, attention=attends).double() for _ in range(4)]
        x = torch.randn(4, 7, 3, dtype=torch.float64)
        by_score, by_says = torch.randn(2, 4, 7, dtype=torch.float64)
    stack = stack_of(networks, torch.device("cpu"))
    ones = torch.nn.functional.pad(x, (0, 1), value=1.0)
    scores, says = stack.forward(ones, range(4))
    stack.backward(by_score, by_says if attends else None)
    for model, network in enumerate(networks):
        made, said = network(x[model])
        torch.testing.assert_close(scores[model], made.detach())
        total = (made * by_score[model]).sum()
        if attends:
            torch.testing.assert_close(says[model], said.detach())
            total = total + (said * by_says[model]).sum()
        total.backward()
        parts = [network.features[0].weight.grad.T, network.features[0].bias.grad]
        parts += [network.score.weight.grad, network.score.bias.grad]
        if attends:
            parts += [network.attention.value.weight.grad.T, network.attention.value.bias.grad]
            parts += [network.attention.score.weight.grad, network.attention.score.bias.grad]
        expected = torch.cat([part.reshape(-1) for part in parts])
        torch.testing.assert_close(stack.gradient[model, :-2], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("attends", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_scores_of_shared_instances_are_those_of_each_network(attends: bool, own: bool) -> None:
    with loop.seeded(0):
        made = [nn.Sequential(nn.Linear(3, 5), nn.Tanh()) if own else None for _ in range(3)]
        networks = [InstanceNetwork(3, 5, attention=attends, module=module) for module in made]
        x = torch.randn(11, 3)
        factor, shift = torch.rand(3, 4) + 0.5, torch.randn(3, 4)
    factor[:, -1], shift[:, -1] = 1.0, 0.0
    stack = stack_of(networks, torch.device("cpu"))
    stack.prepare(factor, shift)
    scores, says = stack.of_all(torch.nn.functional.pad(x, (0, 1), value=1.0))
    for model in range(3):
        expected, said = stack.network(model)(x * factor[model, :-1] + shift[model, :-1])
        torch.testing.assert_close(scores[:, model], expected.detach(), rtol=0, atol=2e-5)
        if attends:
            torch.testing.assert_close(says[:, model], said.detach(), rtol=0, atol=2e-5)
    assert (says is None) != attends


@each
def test_an_epoch_is_that_of_the_public_loss_and_optimiser(method: str) -> None:
    """The same networks, batches and instances, by the parts that are there for networks of one's own."""
    bags, seed = make_bags(), 5
    settings = {"margins": 0.7, "epochs": 2, "batch_size": 6, "lr": 0.05, "milestones": (1,)}
    fit = fit_stacked(bags, None, [np.arange(40)], method=method, random_state=[seed], **settings)
    root = seed_value(seed)
    attends = method == "midam-att"
    with loop.seeded(seed_value(root, 0)):
        network = InstanceNetwork(4, attention=attends)
    x = torch.tensor((bags.instances - fit.mean[0]) / fit.scale[0], dtype=torch.float32)
    labels = torch.tensor(bags.labels)
    loss: Any = {
        "midam-smx": lambda: MIDAMSmxLoss(40, margin=0.7),
        "midam-att": lambda: MIDAMAttLoss(40, margin=0.7),
        "auc-m": lambda: AUCMarginLoss(margin=0.7),
        "ce": lambda: None,
    }[method]()
    if method == "ce":
        optimizer: Any = torch.optim.Adam(network.parameters(), lr=0.05, weight_decay=1e-4)
    else:
        known = METHODS[method]
        optimizer = MIDAMOptimizer(
            network.parameters(), loss, lr=0.05, momentum=known["momentum"], clip_value=known["clip_value"]
        )
    sampler = BalancedBagSampler(bags.labels, 6, random_state=seed_value(root, 1))
    for epoch in range(2):
        if epoch == 1:
            for group in optimizer.param_groups:
                group["lr"] = 0.005
            if method.startswith("midam"):
                loss.update_smoothing()
        plan = sampler.batches(epoch)
        drawn = np.full((1, len(plan), max(map(len, plan))), -1)
        for step, batch in enumerate(plan):
            drawn[0, step, : len(batch)] = batch
        rows, mask = sample_instances(bags.offsets, drawn, 4, [np.random.default_rng(seed_sequence(root, 2, epoch))])
        values = []
        for step, batch in enumerate(plan):
            at, there = rows[0, step, : len(batch)], torch.tensor(mask[0, step, : len(batch)])
            scores, says = network(x[at.reshape(-1)])
            scores = scores.view(at.shape)
            index, y = torch.tensor(batch), labels[batch]
            if method == "midam-smx":
                value = loss(scores.sigmoid(), y, index, there)
            elif method == "midam-att":
                value = loss(scores, says.view(at.shape), y, index, there)
            else:
                values_of = scores.sigmoid() if method == "auc-m" else scores
                pooled = (values_of * there).sum(1) / there.sum(1)
                value = (
                    loss(pooled, y)
                    if method == "auc-m"
                    else nn.functional.binary_cross_entropy_with_logits(pooled, y.float())
                )
            optimizer.zero_grad()
            if loss is not None:
                loss.zero_grad()
            value.backward()
            optimizer.step()
            values.append(value.item())
        assert fit.losses[0, epoch] == pytest.approx(np.mean(values), rel=1e-4)
    trained = fit.network(0).network
    for (name, one), other in zip(trained.named_parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-4 if method == "ce" else 2e-5, msg=name)


# ---------------------------------------------------------------- many at once


@each
def test_a_model_is_what_it_would_be_alone(method: str) -> None:
    bags = make_bags()
    train = [*halves(), np.arange(6, 37), np.arange(40)[::-1]]  # of different numbers of batches
    margins = [0.1, 0.5, 1.0, 1.0]
    settings = {"method": method, "epochs": 4, "batch_size": 6, "lr": 0.02}
    together = fit_stacked(bags, None, train, margins=margins, random_state=[3, 1, 4, 1], **settings)
    for model in range(4):
        seed = [[3, 1, 4, 1][model]]
        alone = fit_stacked(bags, None, [train[model]], margins=margins[model], random_state=seed, **settings)
        np.testing.assert_allclose(together.scores[model], alone.scores[0], rtol=0, atol=5e-4)
        np.testing.assert_allclose(together.losses[model], alone.losses[0], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(together.mean[model], alone.mean[0])
        assert together.midpoints[model] == pytest.approx(alone.midpoints[0], abs=5e-4)


@each
def test_the_same_seed_gives_the_same_bits_and_no_global_generator_is_touched(method: str) -> None:
    bags = make_bags()
    before = torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()
    first, again, other = (
        fit_stacked(bags, None, halves(), method=method, epochs=3, random_state=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.scores, again.scores)
    assert (first.scores != other.scores).any()
    assert (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()) == before
    # the two models of one call differ as well
    same = fit_stacked(bags, None, [np.arange(40)] * 2, method=method, epochs=1)
    assert (same.scores[0] != same.scores[1]).any()


@each
def test_goes_on_from_a_checkpoint_to_the_same_bits(method: str, tmp_path: Path) -> None:
    bags = make_bags()
    settings = {"method": method, "milestones": (2, 3), "margins": [0.5, 1.0], "batch_size": 6, "checkpoint_every": 2}
    train = [np.arange(40), np.arange(5, 33)]
    whole = fit_stacked(bags, None, train, epochs=5, **settings)
    file = tmp_path / "c.pt"
    fit_stacked(bags, None, train, epochs=3, checkpoint=file, **settings)
    resumed = fit_stacked(bags, None, train, epochs=5, checkpoint=file, **settings)
    np.testing.assert_array_equal(resumed.epochs, [1, 2, 3, 4, 5])
    for name in ("scores", "losses", "aucs", "midpoints"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    for other in ({"lr": 0.5}, {"margins": [0.5, 0.6]}, {"random_state": 1}):
        with pytest.raises(ValueError, match="another training"):
            fit_stacked(bags, None, train, epochs=5, checkpoint=file, **settings | other)
    with pytest.raises(ValueError, match="5 epochs, more than epochs=4"):
        fit_stacked(bags, None, train, epochs=4, checkpoint=file, **settings)


def test_which_epochs_are_recorded() -> None:
    bags = make_bags(20)
    every = fit_stacked(bags, None, halves(20), epochs=5)
    third = fit_stacked(bags, None, halves(20), epochs=5, evaluate_every=3)
    last = fit_stacked(bags, None, halves(20), epochs=5, evaluate_every=None)
    assert [fit.epochs.tolist() for fit in (every, third, last)] == [[1, 2, 3, 4, 5], [3, 5], [5]]
    assert every.scores.shape == (2, 5, 20)
    assert every.scores.dtype == np.float32
    np.testing.assert_array_equal(third.scores, every.scores[:, [2, 4]])
    np.testing.assert_array_equal(last.scores, every.scores[:, [4]])
    assert every.losses.shape == every.aucs.shape == (2, 5)
    assert "n_models=2, n_epochs=5, n_recorded=5, n_bags=20" in repr(every)


@each
def test_scores_are_those_of_the_network_from_all_instances(method: str) -> None:
    bags = make_bags()
    for pooling in POOLINGS if method in ("ce", "auc-m") else (None,):
        fit = fit_stacked(bags, None, halves(), method=method, pooling=pooling, epochs=2)
        for model in range(2):
            network = fit.network(model)
            x = torch.tensor((bags.instances - fit.mean[model]) / fit.scale[model], dtype=torch.float32)
            with torch.no_grad():
                logits = network(x, torch.tensor(bags.offsets)) + network.midpoint
            np.testing.assert_allclose(fit.scores[model, -1], logits, rtol=0, atol=2e-5)


@pytest.mark.parametrize("state", ["current", "previous"])
@pytest.mark.parametrize("gamma", [1.0, 0.5, 1e-3])
@pytest.mark.parametrize("method", ["midam-smx", "midam-att"])
def test_models_with_fewer_batches_stay_finite(method: str, gamma: float, state: str) -> None:
    bags = make_bags(share=0.2)
    fit = fit_stacked(
        bags, None, [np.arange(40), np.arange(5, 20)], method=method, epochs=4, gamma=gamma, gradient_state=state
    )
    assert np.isfinite(fit.scores).all()
    assert np.isfinite(fit.losses).all()
    assert (fit.aucs[:, -1] > 0).all()


def test_bags_that_a_model_does_not_train_on_do_not_change_it() -> None:
    bags = make_bags()
    [first, second] = halves()
    instances = bags.instances.copy()
    instances[np.isin(bags.bag_index, second)] *= 3
    labels = bags.labels.copy()
    labels[second] = 1 - labels[second]
    fits = [
        fit_stacked(given, y, [first, first[:-4]], epochs=2)
        for given, y in ((bags, None), (bags.with_instances(instances), labels))
    ]
    np.testing.assert_array_equal(fits[0].mean, fits[1].mean)
    rows = bags.instances[np.isin(bags.bag_index, first)]
    np.testing.assert_allclose(fits[0].mean[0], rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(fits[0].scale[0], rows.std(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(fits[0].scores[:, :, first], fits[1].scores[:, :, first])


def test_a_constant_feature_becomes_0_and_a_wide_one_is_refused() -> None:
    bags = make_bags()
    instances = bags.instances.copy()
    instances[:, 0] = 1e5 + 0.1
    fit = fit_stacked(bags.with_instances(instances), None, halves(), epochs=1)
    np.testing.assert_array_equal(fit.mean[:, 0], 1e5 + 0.1)
    np.testing.assert_array_equal(fit.scale[:, 0], 1.0)
    plain = fit_stacked(bags, None, halves(), epochs=1, standardize=False)
    assert (plain.mean == 0).all()
    assert (plain.scale == 1).all()
    instances[:, 0] = np.linspace(-1e300, 1e300, len(instances))
    with pytest.raises(ValueError, match="feature 0 of bags is too large"):
        fit_stacked(bags.with_instances(instances), None, halves(), epochs=1)
    with pytest.raises(ValueError, match=r"instances\[0\] of bags does not fit float32"):
        fit_stacked(bags.with_instances(instances), None, halves(), epochs=1, standardize=False)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_how_large_pieces_are_does_not_change_scores(pooling: str) -> None:
    bags = make_bags(12, most=30)
    with loop.seeded(0):
        network = PooledNetwork(InstanceNetwork(4, attention=pooling == "att"), pooling, squash=True)
    mean, scale = bags.instances.mean(axis=0), bags.instances.std(axis=0)
    found = [score_bags(network, bags, mean, scale, batch_instances=size) for size in (1, 2, 7, 50, 10_000)]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-6)
    x = torch.tensor((bags.instances - mean) / scale, dtype=torch.float32)
    np.testing.assert_allclose(found[0], network(x, torch.tensor(bags.offsets)).detach(), rtol=0, atol=1e-6)


def test_pieces_with_scores_of_any_size() -> None:
    scores = torch.tensor([[1e4], [-1e4], [0.0], [5.0], [5.0]], dtype=torch.float64)
    offsets = np.array([0, 3, 5])
    for pooling, says in (("smx", None), ("att", scores)):
        for size in (1, 2, 5):
            pool = RunningPool(offsets, 1, pooling, squash=False, tau=1e-3, device=torch.device("cpu"))
            for first in range(0, 5, size):
                part = slice(first, first + size)
                pool.add(first, scores[part], None if says is None else says[part])
            expected = [[1e4 - 1e-3 * np.log(3)], [5.0]] if pooling == "smx" else [[1e4], [5.0]]
            np.testing.assert_allclose(pool.scores(), expected, rtol=1e-12)


@each
def test_the_training_auc_is_that_of_the_training_bags_each_counted_once(method: str) -> None:
    """Where steps are too small to change anything, and every instance is drawn."""
    bags, train = make_bags(share=0.2), [np.arange(40), np.arange(3, 33)]
    fit = fit_stacked(bags, None, train, method=method, epochs=2, gamma=1.0, n_sampled=9, lr=1e-12)
    for model, part in enumerate(train):
        expected = mf.auc(fit.scores[model, -1, part].astype(float), bags.labels[part])
        np.testing.assert_allclose(fit.aucs[model], expected, rtol=0, atol=1e-12)


def test_training_stops_where_it_is_told_to() -> None:
    bags = make_bags()
    fit = fit_stacked(bags, None, halves(), epochs=9, evaluate_every=None, stop=lambda aucs: len(aucs) == 4)
    assert fit.losses.shape == (2, 4)
    assert fit.epochs.tolist() == [4]
    seen: list[tuple[int, int, float]] = []
    fit_stacked(bags, None, halves(), epochs=2, callback=lambda *told: seen.append(told))
    assert [told[:2] for told in seen] == [(1, 2), (2, 2)]


def test_a_loss_that_is_not_finite_is_told() -> None:
    bags = make_bags()
    with pytest.raises(FloatingPointError, match="of model 0 became"):
        fit_stacked(bags, None, halves(), method="ce", pooling="max", epochs=60, lr=1e37)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "svm"}, "method must be one of"),
        ({"method": "midam-smx", "pooling": "max"}, "pooling of midam-smx is 'smx'"),
        ({"method": "ce", "pooling": "median"}, "pooling must be"),
        ({"alpha_rule": "newton"}, "alpha_rule"),
        ({"gradient_state": "next"}, "gradient_state"),
        ({"margins": [1.0, 1.0, 1.0]}, r"margins must be a number or have shape \(2,\)"),
        ({"margins": -1.0}, "margins must be at least 0"),
        ({"epochs": 0}, "epochs"),
        ({"n_sampled": 0}, "n_sampled"),
        ({"batch_size": 1}, "batch_size"),
        ({"positive_share": 0.0}, "positive_share"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"tau": -1.0}, "tau must be above 0"),
        ({"gamma": 1.5}, "gamma must be at most 1"),
        ({"momentum": 1.0}, "momentum"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"random_state": [1, 2, 3]}, "random_state must be one or 2 integers"),
        ({"clip_norm": 0.0}, "clip_norm must be above 0 and finite"),
        ({"clip_norm": -1.0}, "clip_norm must be above 0 and finite"),
        ({"clip_norm": float("nan")}, "clip_norm must be above 0 and finite"),
        ({"hidden": 0}, "hidden must be an integer of at least 1 or None"),
        ({"evaluate_every": 1.5}, "evaluate_every must be an integer of at least 1 or None"),
    ],
)
def test_arguments_that_cannot_be_used(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_stacked(make_bags(), None, halves(), **wrong)


def test_training_bags_that_cannot_be_used() -> None:
    for part in (np.arange(40) < 20, np.arange(40) + 0.5, [[0, 1], [38, 39]], 3):
        with pytest.raises(TypeError, match=r"train\[0\] must be a list of bag numbers"):
            fit_stacked(make_bags(), None, [part], epochs=1)
    bags = make_bags()
    one_class = np.flatnonzero(bags.labels == 1)
    for train, message in (
        ([halves()[0], one_class], r"train\[1\]: all 20 labels are the same"),
        ([np.array([0, 40])], r"train\[0\] must hold bag numbers from 0 to 39"),
        ([np.array([0, 0, 39])], r"train\[0\] names a bag more than once"),
        ([], "train is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_stacked(bags, None, train)
    with pytest.raises(ValueError, match="labels is None"):
        fit_stacked(mf.Bags(bags.instances, bags.offsets), None, halves())
    with pytest.raises(TypeError, match=r"bags must be milfast\.Bags or LazyBags"):
        fit_stacked(bags.to_list(), bags.labels, halves())  # type: ignore[arg-type]


# ---------------------------------------------------------------- estimators


@pytest.mark.parametrize("name", NAMES)
def test_lazy_bags_give_the_bits_of_bags_in_memory(name: str) -> None:
    bags = make_bags()
    lazy = LazyBags(bags.to_list(), bags.labels)
    kind = mf.models.get(name)
    in_memory, read = (kind(epochs=3, random_state=0).fit(given) for given in (bags, lazy))
    expected = in_memory.decision_function(bags)
    np.testing.assert_array_equal(read.decision_function(bags), expected)
    np.testing.assert_array_equal(read.decision_function(lazy), expected)
    np.testing.assert_array_equal(read.instance_scores(lazy), in_memory.instance_scores(bags))


class Counted:
    """A bag of a million instances that are made up when they are asked for."""

    largest = 0

    def __init__(self, label: int, size: int) -> None:
        self.label, self.size = label, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        Counted.largest = max(Counted.largest, len(rows))
        return np.stack([np.sin(rows * 0.7 + self.label), np.cos(rows * 1.3), rows % 7 - 3 + self.label], axis=1)


def test_a_bag_of_a_million_is_never_there_as_a_whole() -> None:
    Counted.largest = 0
    lazy = LazyBags([Counted(label, 50_000 if i else 1_000_000) for i, label in enumerate([0, 1, 0, 1])], [0, 1, 0, 1])
    model = mf.models.get("MIDAM-smx")(hidden=2, epochs=2, random_state=0).fit(lazy)
    assert np.isfinite(model.decision_function(lazy)).all()
    assert Counted.largest * 3 <= 1 << 17


def test_a_network_of_ones_own_for_images() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(12) % 2
    images = [rng.integers(0, 100, size=(5, 1, 6, 6)).astype(np.uint8) + (150 * y).astype(np.uint8) for y in labels]
    lazy = LazyBags(images, labels)

    def network(n_features: int) -> nn.Module:
        assert n_features == 36
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8))

    for name in NAMES:
        pooled = {"pooling": "att"} if name in ("AUC-M", "CE") else {}
        model = mf.models.get(name)(module=network, epochs=60, lr=0.1, random_state=0, **pooled)
        scores = model.fit(lazy).decision_function(lazy)
        assert mf.auc(scores, labels) == 1.0
        assert clone(model).module is network
        np.testing.assert_array_equal(copy.deepcopy(model).decision_function(lazy), scores)


def test_modules_train_as_the_network_that_is_built_in(tmp_path: Path) -> None:
    """The same layers by automatic differentiation, from the same numbers drawn: the same training but for rounding."""
    bags = make_bags()

    def built(own: bool) -> InstanceNetwork:
        made = InstanceNetwork(4, 6, attention=True)
        if own:
            again = InstanceNetwork(4, module=nn.Sequential(nn.Linear(4, 6), nn.Tanh()), attention=True)
            again.load_state_dict(made.state_dict())
            return again
        return made

    fits = [
        fit_stacked(bags, None, halves(), method="midam-att", epochs=4, build=lambda own=own: built(own))
        for own in (False, True)
    ]
    np.testing.assert_allclose(fits[1].scores, fits[0].scores, rtol=0, atol=1e-4)
    settings = {"module": lambda n: nn.Sequential(nn.Linear(n, 6), nn.BatchNorm1d(6)), "batch_size": 6}
    whole = fit_stacked(bags, None, halves(), epochs=3, **settings)
    fit_stacked(bags, None, halves(), epochs=1, checkpoint=tmp_path / "c.pt", **settings)
    resumed = fit_stacked(bags, None, halves(), epochs=3, checkpoint=tmp_path / "c.pt", **settings)
    np.testing.assert_array_equal(resumed.scores, whole.scores)


def test_what_fills_up_a_batch_is_not_shown_to_a_module() -> None:
    """Batch normalisation sees the drawn instances alone: no bag of a test set, and nothing of other models."""
    bags = make_bags()
    seen = []

    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh())

        def forward(self, x: Any) -> Any:
            if self.training:
                seen.append(x.detach())
            return self.layers(x)

    train = [np.arange(5, 35), np.arange(9, 38)]  # 2 and 3 batches of different sizes, without the first bag
    settings = {"module": lambda n: Norm(), "epochs": 3, "batch_size": 16, "lr": 0.05, "standardize": False}
    together = fit_stacked(bags, None, train, random_state=[1, 2], **settings)
    assert len(seen) == 3 * (2 + 3)
    first = torch.tensor(bags.instances[0].tolist())
    assert not any((rows == first).all(dim=1).any() for rows in seen)
    for rows in seen:
        assert len(rows.unique(dim=0)) == len(rows)
    for model in (0, 1):
        alone = fit_stacked(bags, None, [train[model]], random_state=[[1, 2][model]], **settings)
        np.testing.assert_allclose(together.scores[model], alone.scores[0], rtol=0, atol=1e-5)


def test_what_a_module_returns_is_looked_at() -> None:
    bags = make_bags()
    score = mf.models.get("MIDAM-smx")(module=lambda n: nn.Linear(n, 1), epochs=1, random_state=0).fit(bags)
    assert score.module_.network.score is None
    with pytest.raises(ValueError, match="attention needs features"):
        mf.models.get("MIDAM-att")(module=lambda n: nn.Linear(n, 1), epochs=1).fit(bags)
    with pytest.raises(ValueError, match="module must return scores"):
        mf.models.get("MIDAM-smx")(module=lambda n: nn.Unflatten(1, (2, 2)), epochs=1).fit(bags)
    with pytest.raises(ValueError, match="no parameter that can be trained"):
        mf.models.get("MIDAM-smx")(module=lambda n: nn.AvgPool1d(4), epochs=1).fit(bags)
    with pytest.raises(ValueError, match="parameters of module must be float32: module"):
        mf.models.get("MIDAM-smx")(module=lambda n: nn.Linear(n, 2).double(), epochs=1).fit(bags)
    with pytest.raises(TypeError, match="module must be a torch module"):
        mf.models.get("MIDAM-smx")(module=3).fit(bags)


def test_parameters_that_models_do_not_have() -> None:
    for name in NAMES:
        kind = mf.models.get(name)
        for alien in ("dropout", "optimizer", "faults"):
            assert alien not in kind().get_params()
            with pytest.raises(TypeError, match=alien):
                kind(**{alien: 0})
    smx, att, ce = (set(mf.models.get(name)().get_params()) for name in ("MIDAM-smx", "MIDAM-att", "CE"))
    assert smx - att == {"tau"}
    assert {"margin", "gamma"} <= att
    assert not {"margin", "gamma", "momentum"} & ce
    assert "pooling" in ce


@pytest.mark.parametrize("name", NAMES)
def test_predictions_cut_between_the_classes(name: str) -> None:
    bags, fresh = make_bags(80, most=4), make_bags(80, seed=1, most=4)
    model = mf.models.get(name)(epochs=40, lr=0.05, random_state=0).fit(bags)
    assert (model.predict(fresh) == fresh.labels).mean() > 0.75
    assert len(model.loss_curve_) == len(model.auc_curve_) == 40
    early = mf.models.get(name)(epochs=40, lr=0.05, patience=2, tol=0.2, random_state=0).fit(bags)
    assert len(early.loss_curve_) < 40


@pytest.mark.parametrize("name", ["MIDAM-smx", "MIDAM-att"])
@pytest.mark.parametrize("data", ["musk1", pytest.param("musk2", marks=pytest.mark.slow)])
def test_musk_is_learned(name: str, data: str, mil_data: Path) -> None:
    bags = mf.datasets.load(data)
    model = mf.models.get(name)(random_state=0).fit(bags)
    assert np.isfinite(model.loss_curve_).all()
    assert mf.auc(model.decision_function(bags), bags.labels) > 0.95
