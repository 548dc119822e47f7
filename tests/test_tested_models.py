"""The seven deep models of Raff & Holt (2023) beside obvious loops over bags, or torch's own layers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import milfast as mf
from milfast.bags import Bags

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from milfast.models.deep.causal_mil import CausalNetwork, log_normal  # noqa: E402
from milfast.models.deep.gnn_mil import GraphNetwork, nearest  # noqa: E402
from milfast.models.deep.mil_pooling import MILPoolingNetwork  # noqa: E402
from milfast.models.deep.tran_mil import TransformerNetwork  # noqa: E402
from milfast.models.deep.transformer import EncoderLayer  # noqa: E402
from milfast.training import loop  # noqa: E402
from milfast.training.ragged import Padding  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

few = settings(max_examples=15, deadline=None)
bag_sizes = st.lists(st.integers(1, 7), min_size=1, max_size=8)


def made(network: Callable[[], nn.Module], sizes: list[int], seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    with loop.seeded(seed):
        return (
            network().double().eval(),
            torch.randn(sum(sizes), 4, dtype=torch.float64),
            torch.tensor(np.concatenate(([0], np.cumsum(sizes)))),
        )


def same(network: nn.Module, instances: torch.Tensor, cuts: torch.Tensor, expected: list[torch.Tensor]) -> None:
    """Logits and gradients of all parameters agree."""
    found = network(instances, cuts)
    torch.testing.assert_close(found, torch.stack(expected))
    weights = torch.linspace(-1, 1, len(found), dtype=torch.float64) + 0.1
    parameters = list(network.parameters())
    ours = torch.autograd.grad((found * weights).sum(), parameters)
    theirs = torch.autograd.grad((torch.stack(expected) * weights).sum(), parameters)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mi-Net", 35_329),
        ("MI-Net", 35_329),
        ("MIL-Pooling", 68_225),
        ("Tran-MIL", 301_057),
        ("GNN-MIL", 35_329),
        ("Hopfield", 68_753),
    ],
)
def test_parameter_counts(name: str, count: int) -> None:
    assert sum(p.numel() for p in mf.models.get(name)().build(16).parameters()) == count


@few
@given(bag_sizes, st.integers(0, 1000))
def test_mil_pooling(sizes: list[int], seed: int) -> None:
    network, x, cuts = made(lambda: MILPoolingNetwork(4, 6), sizes, seed)
    expected = []
    for a, b in pairwise(cuts.tolist()):
        h = network.embed(x[a:b])
        seen = torch.cat([h, h.mean(dim=0).expand_as(h)], dim=1)
        weights = network.attention(torch.tanh(network.context(seen))).softmax(dim=0)
        expected.append((weights * h).sum())
    same(network, x, cuts, expected)


def as_torch_layer(layer: EncoderLayer, width: int, feedforward: int) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(width, layer.heads, feedforward, layer.drop.p, batch_first=True).double()
    theirs.self_attn.in_proj_weight = layer.project.weight
    theirs.self_attn.in_proj_bias = layer.project.bias
    for name, ours in {
        "self_attn.out_proj": layer.out,
        "linear1": layer.widen,
        "linear2": layer.narrow,
        "norm1": layer.first_norm,
        "norm2": layer.second_norm,
    }.items():
        parent, _, last = name.rpartition(".")
        setattr(theirs.get_submodule(parent), last, ours)
    return theirs.eval()


@few
@given(bag_sizes, st.integers(0, 1000), st.sampled_from([60, 1 << 20]))
def test_a_transformer_layer_is_torchs(sizes: list[int], seed: int, largest: int) -> None:
    with loop.seeded(seed):
        layer = EncoderLayer(6, 3, 5, 0.1).double().eval()
        x = torch.randn(sum(sizes), 6, dtype=torch.float64)
    cuts = torch.tensor(np.concatenate(([0], np.cumsum(sizes))))
    theirs = as_torch_layer(layer, 6, 5)
    expected = torch.cat([theirs(x[None, a:b])[0] for a, b in pairwise(cuts.tolist())])
    torch.testing.assert_close(layer(x, Padding.of(cuts, largest=largest)), expected)


def test_a_transformer_layer_starts_as_torchs() -> None:
    ours, theirs = EncoderLayer(128, 8, 128, 0.1), nn.TransformerEncoderLayer(128, 8, 128)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    for one, other in (
        (ours.project.weight, theirs.self_attn.in_proj_weight),
        (ours.out.weight, theirs.self_attn.out_proj.weight),
    ):
        assert float(one.detach().std()) == pytest.approx(float(other.detach().std()), rel=0.05)
    for bias in (ours.project.bias, ours.out.bias):
        assert not bias.any()


@few
@given(bag_sizes, st.integers(0, 1000))
def test_attention_while_training_is_that_of_scoring_but_for_dropout(sizes: list[int], seed: int) -> None:
    with loop.seeded(seed):
        layer = EncoderLayer(6, 3, 5, 0.25).double()
        x = torch.randn(sum(sizes), 6, dtype=torch.float64)
    paddings = Padding.of(torch.tensor(np.concatenate(([0], np.cumsum(sizes)))))
    expected = layer.eval().attend(x, paddings)
    layer.train()
    layer.drop.forward = lambda values: values
    torch.testing.assert_close(layer.attend(x, paddings), expected)


@few
@given(bag_sizes, st.integers(0, 1000))
def test_tran_mil(sizes: list[int], seed: int) -> None:
    network, x, cuts = made(lambda: TransformerNetwork(4, 6, heads=3, layers=2), sizes, seed)
    layers = [as_torch_layer(layer, 6, 6) for layer in network.layers]
    expected = []
    for a, b in pairwise(cuts.tolist()):
        values = network.embed(x[None, a:b])
        for layer in layers:
            values = layer(values)
        expected.append(network.head(values[0].max(dim=0).values)[0])
    same(network, x, cuts, expected)


def test_hidden_must_be_a_multiple_of_heads() -> None:
    bags = Bags([[0.0], [1.0]], [0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="hidden must be a multiple of heads, 8; got 12"):
        mf.models.get("Tran-MIL")(hidden=12).fit(bags)


@few
@given(bag_sizes, st.integers(0, 1000), st.integers(1, 3), st.sampled_from([20, 1 << 20]))
def test_edges_lead_to_the_nearest_of_the_same_bag(sizes, seed, neighbours, largest) -> None:
    _, x, cuts = made(nn.Identity, sizes, seed)
    found = set(zip(*(part.tolist() for part in nearest(x, cuts, neighbours)), strict=True))
    expected = set()
    for a, b in pairwise(cuts.tolist()):
        for i in range(a, b):
            others = sorted((float((x[i] - x[j]).norm()), j) for j in range(a, b) if j != i)
            expected |= {(i, j) for _, j in others[:neighbours]}
    assert found == expected


@few
@given(bag_sizes, st.integers(0, 1000))
def test_gnn_mil(sizes: list[int], seed: int) -> None:
    network, x, cuts = made(lambda: GraphNetwork(4, 6), sizes, seed)
    source, target = nearest(x, cuts, 2)
    whole = torch.eye(len(x), dtype=torch.float64)
    whole[target, source] = 1.0
    degree = whole.sum(dim=1)
    whole = whole / (degree[:, None] * degree[None, :]).sqrt()
    expected = []
    for a, b in pairwise(cuts.tolist()):
        values = x[a:b]
        for place, layer in enumerate(network.layers):
            values = whole[a:b, a:b] @ values @ layer.linear.weight.T + layer.linear.bias
            if place < 2:
                values = values.relu()
        expected.append(network.head(values.mean(dim=0))[0])
    same(network, x, cuts, expected)


@few
@given(bag_sizes, st.integers(0, 1000))
def test_causal_mil_scores_by_its_best_instance(sizes: list[int], seed: int) -> None:
    network, x, cuts = made(lambda: CausalNetwork(4, 6, latent=3), sizes, seed)
    means = network.posterior(network.embed(x))[:, :3]
    expected = [network.head(means[a:b]).max() for a, b in pairwise(cuts.tolist())]
    torch.testing.assert_close(network(x, cuts), torch.stack(expected))


@few
@given(bag_sizes, st.integers(0, 1000))
def test_the_loss_of_causal_mil_is_that_of_each_bags_own_witness(sizes: list[int], seed: int) -> None:
    network, x, cuts = made(lambda: CausalNetwork(4, 6, latent=3, beta=0.5), sizes, seed)
    labels = torch.arange(len(sizes), dtype=torch.float64) % 2
    with loop.seeded(seed):
        loss, logits = network.training_loss(x, cuts, labels)
    with loop.seeded(seed):
        noise = torch.randn(len(x), 3, dtype=torch.float64)
    total = torch.zeros((), dtype=torch.float64)
    expected = []
    for number, (a, b) in enumerate(pairwise(cuts.tolist())):
        h = network.embed(x[a:b])
        mean, log_variance = network.posterior(h)[:, :3], network.posterior(h)[:, 3:]
        z = mean + (log_variance / 2).exp() * noise[a:b]
        k = int(network.head(z).argmax())
        m, log_s2 = network.prior(h.mean(dim=0))
        posterior = torch.distributions.Normal(mean[k], (log_variance[k] / 2).exp())
        prior = torch.distributions.Normal(m, (log_s2 / 2).exp())
        divergence = (m**2 + log_s2.exp() - log_s2 - 1) / 2
        divergence = divergence + posterior.log_prob(z[k]).sum() - prior.log_prob(z[k]).sum()
        logit = network.head(z[k])[0]
        cross_entropy = nn.functional.binary_cross_entropy_with_logits(logit, labels[number])
        reconstruction = ((network.decode(z[k : k + 1])[0] - x[a + k]) ** 2).mean()
        total = total + cross_entropy + (reconstruction + 0.5 * divergence) / 1000
        expected.append(logit)
    torch.testing.assert_close(logits, torch.stack(expected))
    torch.testing.assert_close(loss, total / len(sizes))


def test_a_prior_that_is_too_sure_does_not_end_the_training_of_causal_mil() -> None:
    network = CausalNetwork(4, 6, latent=3)
    with torch.no_grad():
        network.prior.bias.copy_(torch.tensor([0.0, -200.0]))
    loss, _ = network.training_loss(torch.randn(5, 4), torch.tensor([0, 2, 5]), torch.tensor([0.0, 1.0]))
    torch.autograd.backward(loss)
    assert loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


def test_log_normal_is_the_density_without_its_constant() -> None:
    values, mean, log_variance = torch.randn(3, 5, 2, dtype=torch.float64)
    theirs = torch.distributions.Normal(mean, (log_variance / 2).exp()).log_prob(values).sum(dim=1)
    torch.testing.assert_close(log_normal(values, mean, log_variance), theirs + np.log(2 * np.pi))


def test_layer_norms_hide_shifts_and_scales_of_an_instance_from_hopfield() -> None:
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(60, 16)), np.arange(0, 61, 3), np.arange(20) % 2)
    moved = bags.with_instances(bags.instances * rng.uniform(1, 5, (60, 1)) + rng.normal(0, 9, (60, 1)))
    settings = {"hidden": 8, "epochs": 3, "standardize": False, "random_state": 0}
    for norm, blind in ((True, True), (False, False)):
        model = mf.models.get("Hopfield")(norm=norm, lr=0.05, **settings).fit(bags)
        scores = model.decision_function(bags)
        change = np.abs(model.decision_function(moved) - scores).max() / scores.std()
        assert bool(change < 0.01) is blind
