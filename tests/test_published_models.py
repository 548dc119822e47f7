"""Deep models as they were published, each beside its formula written out for one bag."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import milfast as mf
from milfast.bags import Bags

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from milfast.models.deep.attention import Attention  # noqa: E402
from milfast.models.deep.clam import ClamNetwork, segment_places  # noqa: E402
from milfast.models.deep.hopfield_pooling import HopfieldPooling  # noqa: E402
from milfast.models.deep.trans_mil import (  # noqa: E402
    TransMILNetwork,
    convolution_matrix,
    pseudo_inverse,
)
from milfast.training import loop  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

no_deadline = settings(deadline=None, max_examples=20)
bag_sizes = st.lists(st.one_of(st.just(1), st.integers(1, 12)), min_size=1, max_size=7)


# ------------------------------------------------------------------------------------- formulas, for one bag alone


def softmax(values: list[Tensor]) -> list[Tensor]:
    powers = [(value - max(v.item() for v in values)).exp() for value in values]
    return [power / sum(powers) for power in powers]


def affine(layer: nn.Module, vector: Tensor) -> Tensor:
    return layer.weight @ vector + layer.bias


def attention_scores(attention: nn.Module, embedded: Tensor, branch: int = 0) -> list[Tensor]:
    scores = []
    for h in embedded:
        value = affine(attention.value, h).tanh()
        if attention.gate is not None:
            value = value * affine(attention.gate, h).sigmoid()
        scores.append(affine(attention.score, value)[branch])
    return scores


def weighted(weights: list[Tensor], vectors: Tensor) -> Tensor:
    return sum(a * h for a, h in zip(weights, vectors, strict=True))


def abmil(network: nn.Module, bag: Tensor) -> Tensor:
    h = network.embed(bag)
    return affine(network.head, weighted(softmax(attention_scores(network.attention, h)), h))[0]


def additive(network: nn.Module, bag: Tensor) -> Tensor:
    h = network.embed(bag)
    first, _, second = network.classifier
    attended = [a * v for a, v in zip(softmax(attention_scores(network.attention, h)), h, strict=True)]
    return sum(affine(second, affine(first, z).clamp(min=0))[0] for z in attended)


def dsmil_streams(network: nn.Module, bag: Tensor) -> tuple[Tensor, Tensor]:
    h = network.embed(bag)
    scores = [affine(network.instance_head, v)[0] for v in h]
    critical = max(range(len(bag)), key=lambda i: scores[i].item())
    queries = [affine(network.query, v) for v in h]
    weights = softmax([q @ queries[critical] for q in queries])
    summary = sum(a * affine(network.value, v) for a, v in zip(weights, h, strict=True))
    return scores[critical], affine(network.bag_head, summary)[0]


def dsmil(network: nn.Module, bag: Tensor) -> Tensor:
    return sum(dsmil_streams(network, bag)) / 2


def dsmil_loss(network: nn.Module, bag: Tensor, label: int) -> Tensor:
    return sum(functional.softplus(-s if label else s) for s in dsmil_streams(network, bag)) / 2


def clam(network: nn.Module, bag: Tensor) -> Tensor:
    h = network.embed(bag)
    scores = []
    for c in (0, 1):
        attention = softmax(attention_scores(network.attention, h, c if network.branches == 2 else 0))
        scores.append(network.head.weight[c] @ weighted(attention, h) + network.head.bias[c])
    return scores[1] - scores[0]


def clam_loss(network: nn.Module, bag: Tensor, label: int) -> Tensor:
    logit = clam(network, bag)
    bag_loss = -torch.softmax(torch.stack((torch.zeros_like(logit), logit)), 0)[label].log()
    h = network.embed(bag)
    scores = attention_scores(network.attention, h, label if network.branches == 2 else 0)
    order = sorted(range(len(bag)), key=lambda i: -scores[i].item())
    k = min(network.n_sampled, len(bag) // 2)
    losses = []
    for i, target in [(i, 1) for i in order[:k]] + [(i, 0) for i in order[len(bag) - k :]]:
        p = affine(network.clusters, h[i])[2 * label : 2 * label + 2]
        losses.append(sum(((j != target) + p[j] - p[target]).exp() for j in (0, 1)).log())
    clustering = sum(losses) / len(losses) if losses else 0.0
    return network.bag_weight * bag_loss + (1 - network.bag_weight) * clustering


def nystrom(layer: nn.Module, tokens: Tensor) -> Tensor:
    length, width = tokens.shape
    marks = min(layer.landmarks, length)
    stretch = -(-length // marks)
    filled = torch.cat((tokens.new_zeros(stretch * marks - length, width), tokens))
    depth = width // layer.heads
    heads = []
    for head in range(layer.heads):
        q, k, v = (
            filled @ layer.qkv.weight[part * width + head * depth : part * width + (head + 1) * depth].T
            for part in range(3)
        )
        q = q / math.sqrt(depth)
        q_few, k_few = (torch.stack([part.mean(0) for part in t.split(stretch)]) for t in (q, k))
        among = torch.softmax(q_few @ k_few.T, 1)
        z = among.T / (among.sum(0).max() * among.sum(1).max())
        one = torch.eye(marks, dtype=z.dtype)
        for _ in range(6):
            az = among @ z
            z = z @ (13 * one - az @ (15 * one - az @ (7 * one - az))) / 4
        made = torch.softmax(q @ k_few.T, 1) @ z @ torch.softmax(q_few @ k.T, 1) @ v
        kernel = layer.conv.weight[head, 0]
        rows = []
        for i in range(len(filled)):
            near = range(max(0, i - 16), min(len(filled), i + 17))
            rows.append(made[i] + sum(kernel[j - i + 16] * v[j] for j in near))
        heads.append(torch.stack(rows))
    return layer.out(torch.cat(heads, 1))[-length:]


def trans_mil(network: nn.Module, bag: Tensor) -> Tensor:
    h = network.embed(bag)
    side = math.isqrt(len(bag) - 1) + 1
    tokens = torch.cat((network.class_token[None], h, h[: side * side - len(bag)]))
    tokens = tokens + nystrom(network.attention[0], network.norms[0](tokens))
    square = tokens[1:].T.reshape(1, -1, side, side)
    position = network.position
    square = square + position.conv7(square) + position.conv5(square) + position.conv3(square)
    tokens = torch.cat((tokens[:1], square[0].flatten(1).T))
    tokens = tokens + nystrom(network.attention[1], network.norms[1](tokens))
    scores = network.head(network.norms[2](tokens[0]))
    return scores[1] - scores[0]


def hopfield_pool(layer: nn.Module, bag: Tensor) -> tuple[Tensor, Tensor]:
    """Summary, and weights of shape (instances, heads)."""
    keys = layer.key(layer.norm_key(bag) if layer.norm else bag)
    values = layer.value(layer.norm_value(bag) if layer.norm else bag)
    query = affine(layer.query, layer.norm_state(layer.state) if layer.norm else layer.state)
    heads, weights = [], []
    for head in range(layer.heads):
        part = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        state = query[part]
        for _ in range(layer.update_steps):
            state = weighted(softmax([layer.beta * state @ k for k in keys[:, part]]), keys[:, part])
        weights.append(softmax([layer.beta * state @ k for k in keys[:, part]]))
        heads.append(weighted(weights[-1], values[:, part]))
    return affine(layer.out, torch.cat(heads)), torch.stack([torch.stack(head) for head in weights], 1)


def hopfield(network: nn.Module, bag: Tensor) -> Tensor:
    return affine(network.head, hopfield_pool(network.pool, network.embed(bag))[0])[0]


MODELS: dict[str, dict[str, Any]] = {
    "ABMIL": {},
    "gated-ABMIL": {},
    "Additive-ABMIL": {},
    "DSMIL": {},
    "CLAM-SB": {"n_sampled": 3},
    "CLAM-MB": {"n_sampled": 3},
    "TransMIL": {"heads": 2, "landmarks": 4},
    "Hopfield-embedded": {"heads": 2, "head_dim": 3},
}
FORMULAS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "ABMIL": abmil,
    "gated-ABMIL": abmil,
    "Additive-ABMIL": additive,
    "DSMIL": dsmil,
    "CLAM-SB": clam,
    "CLAM-MB": clam,
    "TransMIL": trans_mil,
    "Hopfield-embedded": hopfield,
}
LOSSES = {"DSMIL": dsmil_loss, "CLAM-SB": clam_loss, "CLAM-MB": clam_loss}
ATTENTIVE = [name for name in MODELS if name != "TransMIL"]
each_model = pytest.mark.parametrize("name", MODELS)
each_attentive = pytest.mark.parametrize("name", ATTENTIVE)


def network_of(name: str, seed: int, **parameters: Any) -> nn.Module:
    """A network in double precision, off training mode, none of whose parameters is zero."""
    with loop.seeded(seed):
        network = mf.models.get(name)(hidden=6, **(MODELS[name] | parameters)).build(4).double().eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return network


def draw(sizes: list[int], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Instances, offsets and labels."""
    generator = torch.Generator().manual_seed(seed)
    instances = torch.randn((sum(sizes), 4), dtype=torch.float64, generator=generator)
    labels = torch.randint(2, (len(sizes),), generator=generator).double()
    return instances, torch.tensor([0, *np.cumsum(sizes).tolist()]), labels


def apart(instances: Tensor, offsets: Tensor) -> list[Tensor]:
    return [instances[a:b] for a, b in pairwise(offsets.tolist())]


def gradients(value: Tensor, network: nn.Module, instances: Tensor) -> list[Tensor]:
    wanted = [instances, *network.parameters()]
    found = torch.autograd.grad(value, wanted, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]


def assert_same_gradients(ours: Tensor, expected: Tensor, network: nn.Module, instances: Tensor) -> None:
    pairs = zip(gradients(ours, network, instances), gradients(expected, network, instances), strict=True)
    for got, wanted in pairs:
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------------------------------------------- the formulas


@each_model
@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_logits_and_their_gradients_are_those_of_the_formula(name: str, sizes: list[int], seed: int) -> None:
    network = network_of(name, seed)
    instances, offsets, _ = draw(sizes, seed)
    instances.requires_grad_()
    expected = torch.stack([FORMULAS[name](network, bag) for bag in apart(instances, offsets)])
    got = network(instances, offsets)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    weights = torch.arange(1.0, len(sizes) + 1, dtype=torch.float64)
    assert_same_gradients((got * weights).sum(), (expected * weights).sum(), network, instances)


@pytest.mark.parametrize("name", LOSSES)
@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_own_losses_and_their_gradients_are_those_of_the_formula(name: str, sizes: list[int], seed: int) -> None:
    network = network_of(name, seed)
    instances, offsets, labels = draw(sizes, seed)
    instances.requires_grad_()
    bags = zip(apart(instances, offsets), labels.int().tolist(), strict=True)
    expected = sum(LOSSES[name](network, bag, label) for bag, label in bags) / len(sizes)
    loss, logits = network.training_loss(instances, offsets, labels)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(logits, network(instances, offsets))
    assert_same_gradients(loss, expected, network, instances)


def test_only_these_have_losses_of_their_own() -> None:
    assert {name for name in MODELS if hasattr(network_of(name, 0), "training_loss")} == set(LOSSES)


@pytest.mark.parametrize("update_steps", [0, 1, 3])
@pytest.mark.parametrize("norm", [True, False])
def test_hopfield_pooling(norm: bool, update_steps: int) -> None:
    with loop.seeded(2):
        layer = HopfieldPooling(4, 3, 2, beta=1.5, update_steps=update_steps, norm=norm).double()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(0.5 * torch.randn_like(parameter))
    instances, offsets, _ = draw([3, 1, 5], 0)
    instances.requires_grad_()
    expected, weights = zip(*(hopfield_pool(layer, bag) for bag in apart(instances, offsets)), strict=True)
    got = layer(instances, offsets)
    torch.testing.assert_close(got, torch.stack(expected), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(layer.weights(instances, offsets), torch.cat(weights), rtol=1e-9, atol=1e-9)
    assert_same_gradients(got.square().sum(), torch.stack(expected).square().sum(), layer, instances)


def test_norms_hide_from_hopfield_pooling_what_is_added_to_or_multiplies_an_instance() -> None:
    instances, offsets, _ = draw([3, 4], 0)
    moved = 5 * instances + torch.arange(7.0)[:, None]
    for norm in (True, False):
        with loop.seeded(0):
            layer = HopfieldPooling(4, 3, 2, norm=norm).double()
        change = (layer(moved, offsets) - layer(instances, offsets)).abs().max()
        # a LayerNorm adds 1e-5 to variances
        assert (change < 1e-6) if norm else (change > 1e-4)


@pytest.mark.parametrize("landmarks", [2, 5, 64])
def test_trans_mil_with_landmarks_fewer_than_tokens_or_not(landmarks: int) -> None:
    network = network_of("TransMIL", 1, landmarks=landmarks)
    instances, offsets, _ = draw([1, 2, 5, 30, 101], 1)  # the last fills a square of side 11, too large for matrices
    expected = torch.stack([trans_mil(network, bag) for bag in apart(instances, offsets)])
    torch.testing.assert_close(network(instances, offsets), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("side", [1, 2, 3, 6])
def test_convolution_matrices(side: int) -> None:
    generator = torch.Generator().manual_seed(side)
    kernels = torch.randn((3, 7, 7), generator=generator, dtype=torch.float64)
    picture = torch.randn((3, side, side), generator=generator, dtype=torch.float64)
    expected = functional.conv2d(picture[None], kernels[:, None], padding=3, groups=3)[0]
    got = convolution_matrix(kernels, side) @ picture.reshape(3, -1, 1)
    torch.testing.assert_close(got.view_as(expected), expected)
    expected = functional.conv1d(picture[None, :, 0], kernels[:, None, 0], padding=3, groups=3)[0]
    got = convolution_matrix(kernels[:, 0], side) @ picture[:, 0, :, None]
    torch.testing.assert_close(got[:, :, 0], expected)


def test_pseudo_inverse_does_not_depend_on_the_other_matrices() -> None:
    matrices = torch.softmax(torch.randn((2, 3, 5, 5), generator=torch.Generator().manual_seed(0)).double(), -1)
    matrices[1] *= 100
    together = pseudo_inverse(matrices)
    assert torch.equal(together[0], pseudo_inverse(matrices[:1])[0])
    diagonal = matrices + 200 * torch.eye(5)
    torch.testing.assert_close(pseudo_inverse(diagonal), torch.linalg.inv(diagonal), rtol=1e-6, atol=1e-8)


@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_segment_places(sizes: list[int], seed: int) -> None:
    values = torch.randint(4, (sum(sizes),), generator=torch.Generator().manual_seed(seed)).float()
    offsets = torch.tensor([0, *np.cumsum(sizes).tolist()])
    expected = []
    for bag in apart(values, offsets):
        order = sorted(range(len(bag)), key=lambda i: (-bag[i].item(), i))
        expected += [order.index(i) for i in range(len(bag))]
    assert segment_places(values, offsets).tolist() == expected


def test_clam_has_no_clustering_loss_for_a_bag_of_one() -> None:
    network = network_of("CLAM-SB", 0)
    instances, offsets, labels = draw([1, 1], 0)
    embedded = network.embed(instances)
    losses = network.clustering_losses(embedded, network.attention(embedded), offsets, labels)
    assert losses.tolist() == [0, 0]


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_parameter_counts_are_those_of_the_published_sizes() -> None:
    assert parameters(Attention(500, 128)) == 500 * 128 + 128 + 128 + 1
    assert parameters(Attention(500, 128, gated=True)) == 2 * (500 * 128 + 128) + 128 + 1
    assert parameters(ClamNetwork(1024, 512)) == 790_791
    assert parameters(ClamNetwork(1024, 512, branches=2)) == 791_048
    assert parameters(TransMILNetwork(1024, 512, landmarks=256)) == 2_672_146
    # what Raff & Holt's first variant has, less its linear head
    assert parameters(HopfieldPooling(16, 128, 8)) == 68_753 - 17


# -------------------------------------------------------------------------------------------------------- the laws


@each_model
@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_a_bag_scores_alone_as_in_a_batch(name: str, sizes: list[int], seed: int) -> None:
    network = network_of(name, seed)
    instances, offsets, _ = draw(sizes, seed)
    alone = [loop.scores(network, bag, torch.tensor([0, len(bag)])) for bag in apart(instances, offsets)]
    torch.testing.assert_close(loop.scores(network, instances, offsets), torch.cat(alone), rtol=1e-9, atol=1e-9)


@each_model
def test_the_order_of_instances_matters_only_where_it_is_said_to(name: str) -> None:
    network = network_of(name, 3)
    instances, offsets, labels = draw([1, 2, 6, 11], 3)
    generator = torch.Generator().manual_seed(0)
    mixed = torch.cat([bag[torch.randperm(len(bag), generator=generator)] for bag in apart(instances, offsets)])
    assert not torch.equal(mixed, instances)
    change = (network(mixed, offsets) - network(instances, offsets)).abs().max()
    if getattr(mf.models.get(name), "order_matters", False):
        assert change > 1e-3
    else:
        assert change < 1e-9
    if name in LOSSES:
        first, second = (network.training_loss(x, offsets, labels)[0] for x in (instances, mixed))
        torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-9)


def test_only_trans_mil_cares_for_the_order() -> None:
    assert [name for name in MODELS if hasattr(mf.models.get(name), "order_matters")] == ["TransMIL"]


@each_model
def test_a_further_instance_can_lower_the_logit(name: str) -> None:
    """What the pages say of these models: none respects the standard assumption."""
    lower = 0
    for seed in range(20):
        network = network_of(name, seed)
        instances, _, _ = draw([6], seed)
        small, large = (loop.scores(network, instances[:n], torch.tensor([0, n])) for n in (5, 6))
        lower += int(large < small - 1e-6)
    assert lower > 0


@each_model
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_large_instances_give_finite_logits_and_gradients(name: str, scale: float) -> None:
    network = network_of(name, 0).float()
    instances, offsets, labels = draw([1, 3, 9], 0)
    instances = (scale * instances).float().requires_grad_()
    logits = network(instances, offsets)
    loss = functional.binary_cross_entropy_with_logits(logits, labels.float())
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients(loss, network, instances))


# -------------------------------------------------------------------------------------------------- the estimators


def make_bags(n_bags: int, seed: int) -> Bags:
    """Bags of 1 to 6 noise instances in four dimensions; in positive ones, one instance lies at 5 in the first two."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 7, n_bags))))
    labels = np.arange(n_bags) % 2
    instances = rng.normal(size=(offsets[-1], 4))
    instances[offsets[:-1][labels == 1], :2] += 5
    return Bags(instances, offsets, labels)


def small(name: str, **parameters: Any) -> Any:
    return mf.models.get(name)(**({"hidden": 16, "epochs": 2, "random_state": 0} | MODELS[name] | parameters))


@pytest.fixture(scope="module")
def bags() -> Bags:
    return make_bags(60, 0)


@each_attentive
def test_instance_weights(name: str, bags: Bags) -> None:
    model = small(name).fit(bags)
    weights = model.instance_weights(bags)
    assert weights.shape == (bags.n_instances,)
    assert (weights >= 0).all()
    np.testing.assert_allclose(np.add.reduceat(weights, bags.offsets[:-1]), 1, atol=1e-5)
    alone = np.concatenate([model.instance_weights(bags[[i]]) for i in range(bags.n_bags)])
    np.testing.assert_allclose(alone, weights, rtol=0, atol=1e-6)


@each_attentive
@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_instance_weights_are_those_of_the_formula(name: str, sizes: list[int], seed: int) -> None:
    network = network_of(name, seed)
    instances, offsets, _ = draw(sizes, seed)
    expected: list[Tensor] = []
    for bag in apart(instances, offsets):
        h = network.embed(bag)
        if name == "DSMIL":
            scores = network.instance_head(h)[:, 0]
            queries = network.query(h)
            expected += softmax(list(queries @ queries[scores.argmax()]))
        elif name == "Hopfield-embedded":
            expected += list(hopfield_pool(network.pool, h)[1].mean(1))
        else:
            expected += softmax(attention_scores(network.attention, h, -1))
    torch.testing.assert_close(
        network.instance_weights(instances, offsets), torch.stack(expected), rtol=1e-9, atol=1e-9
    )


def test_contributions_add_up_to_the_logit(bags: Bags) -> None:
    model = small("Additive-ABMIL").fit(bags)
    added = np.add.reduceat(model.contributions(bags), bags.offsets[:-1])
    np.testing.assert_allclose(added, model.decision_function(bags), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["DSMIL", "CLAM-SB", "CLAM-MB"])
def test_instance_scores_are_of_instances_alone(name: str, bags: Bags) -> None:
    model = small(name).fit(bags)
    scores = model.instance_scores(bags)
    single = Bags(bags.instances, np.arange(bags.n_instances + 1))
    np.testing.assert_allclose(model.instance_scores(single), scores, rtol=0, atol=1e-6)
    assert len(np.unique(scores)) > 1


def test_dsmil_scores_a_bag_of_one_by_its_instance_and_its_average(bags: Bags) -> None:
    model = small("DSMIL").fit(bags)
    single = Bags(bags.instances, np.arange(bags.n_instances + 1))
    first, second = model.module_.streams(
        torch.tensor((bags.instances - model.mean_) / model.scale_, dtype=torch.float32), torch.tensor(single.offsets)
    )
    np.testing.assert_allclose(first.detach(), model.instance_scores(bags), rtol=0, atol=1e-5)
    np.testing.assert_allclose((first + second).detach() / 2, model.decision_function(single), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters", "error", "message"),
    [
        ("ABMIL", {"attention_dim": 0}, ValueError, "attention_dim must be at least 1; got 0"),
        ("gated-ABMIL", {"attention_dim": 2.0}, TypeError, "attention_dim must be an integer"),
        ("Additive-ABMIL", {"attention_dim": True}, TypeError, "attention_dim must be an integer"),
        ("DSMIL", {"attention_dim": -3}, ValueError, "attention_dim must be at least 1"),
        ("DSMIL", {"hidden": 0}, ValueError, "hidden must be at least 1"),
        ("CLAM-SB", {"n_sampled": 0}, ValueError, "n_sampled must be at least 1"),
        ("CLAM-SB", {"bag_weight": 1.5}, ValueError, "bag_weight must be from 0 to 1; got 1.5"),
        ("CLAM-MB", {"bag_weight": "1"}, TypeError, "bag_weight must be a number"),
        ("CLAM-MB", {"attention_dim": None}, TypeError, "attention_dim must be an integer"),
        ("TransMIL", {"heads": 0}, ValueError, "heads must be at least 1"),
        ("TransMIL", {"heads": 7}, ValueError, "hidden must be a multiple of heads=7; got 128"),
        ("TransMIL", {"landmarks": 1.5}, TypeError, "landmarks must be an integer"),
        ("Hopfield-embedded", {"heads": 0}, ValueError, "heads must be at least 1"),
        ("Hopfield-embedded", {"head_dim": "4"}, TypeError, "head_dim must be an integer"),
        ("Hopfield-embedded", {"beta": 0}, ValueError, "beta must be above 0"),
        ("Hopfield-embedded", {"update_steps": -1}, ValueError, "update_steps must be at least 0; got -1"),
        ("Hopfield-embedded", {"update_steps": False}, TypeError, "update_steps must be an integer"),
        ("Hopfield-embedded", {"norm": 1}, TypeError, "norm must be True or False"),
        ("Hopfield-embedded", {"dropout": 1.0}, ValueError, "dropout must be in"),
    ],
)
def test_wrong_parameters(
    name: str,
    parameters: dict[str, object],
    error: type[Exception],
    message: str,
    bags: Bags,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = mf.models.get(name)
    monkeypatch.setattr(kind, "build", lambda *_: pytest.fail("work began before the check"))
    with pytest.raises(error, match=message):
        kind(**parameters).fit(bags)


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match="heads"):
        mf.models.get("ABMIL")(heads=3)
