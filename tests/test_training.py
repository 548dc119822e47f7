"""The training engine: segment operations, checkpoints, early stopping, repeated faults."""

from __future__ import annotations

import functools
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

import milfast as mf
from milfast.bags import Bags

torch = pytest.importorskip("torch")

from milfast.models.deep.bag_mi_net import BagMaxNetwork, BagMINet  # noqa: E402
from milfast.models.deep.instance_mi_net import InstanceMaxNetwork, InstanceMINet  # noqa: E402
from milfast.models.deep.layers import Dropout, Perceptron, tanh, witnesses  # noqa: E402
from milfast.models.deep.wrap import ModuleMIL  # noqa: E402
from milfast.training import checkpoint, devices, flat, loop, notebook, ragged  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

no_deadline = settings(deadline=None)
bag_sizes = st.lists(st.integers(1, 6), min_size=1, max_size=12)
widths = st.sampled_from([(), (1,), (3,)])


def cuts_of(sizes: list[int]) -> torch.Tensor:
    return torch.tensor(np.concatenate(([0], np.cumsum(sizes))))


def numbers(sizes: list[int], extra: tuple[int, ...], seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((sum(sizes), *extra), dtype=torch.float64, generator=generator)


def data(n_bags: int = 40, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Bags of 1 to 6 instances; positive ones have a large first feature."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, n_bags)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = np.arange(n_bags) % 2
    instances = rng.normal(size=(offsets[-1], 4)).astype(np.float32)
    instances[offsets[:-1][labels == 1], 0] += 3
    return torch.tensor(instances), torch.tensor(offsets), torch.tensor(labels)


def as_bags(n_bags: int = 40) -> Bags:
    return Bags(*(part.numpy() for part in data(n_bags)))


# -------------------------------------------------------------------------------------------- segment operations

LOOPS = {
    ragged.segment_sum: lambda bag: bag.sum(dim=0),
    ragged.segment_mean: lambda bag: bag.mean(dim=0),
}


@pytest.mark.parametrize("operation", LOOPS)
@no_deadline
@given(bag_sizes, widths, st.integers(0, 1000))
def test_a_segment_operation_is_a_loop_over_bags_with_its_gradient(operation, sizes, extra, seed) -> None:
    ours, cuts = numbers(sizes, extra, seed).requires_grad_(), cuts_of(sizes)
    loops = ours.detach().clone().requires_grad_()
    weights = numbers(sizes, extra, seed + 1)[: len(sizes)]
    found = operation(ours, cuts)
    expected = torch.stack([LOOPS[operation](loops[a:b]) for a, b in pairwise(cuts.tolist())])
    torch.testing.assert_close(found, expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad, loops.grad)


@no_deadline
@given(bag_sizes, widths, st.integers(0, 1000), st.sampled_from([1.0, 300.0]))
def test_segment_softmax_is_a_softmax_in_each_bag_with_its_gradient(sizes, extra, seed, scale) -> None:
    ours, cuts = (scale * numbers(sizes, extra, seed)).requires_grad_(), cuts_of(sizes)
    loops = ours.detach().clone().requires_grad_()
    found = ragged.segment_softmax(ours, cuts)
    expected = torch.cat([loops[a:b].softmax(dim=0) for a, b in pairwise(cuts.tolist())])
    torch.testing.assert_close(found, expected)
    weights = numbers(sizes, extra, seed + 1)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad, loops.grad, rtol=1e-6, atol=1e-10)


@no_deadline
@given(bag_sizes, widths, st.integers(0, 1000))
def test_segment_argmax_is_the_first_of_the_largest(sizes, extra, seed) -> None:
    values, cuts = numbers(sizes, extra, seed).round(), cuts_of(sizes)
    expected = torch.stack([a + torch.tensor(values[a:b].numpy().argmax(0)) for a, b in pairwise(cuts.tolist())])
    assert torch.equal(ragged.segment_argmax(values, cuts), expected)


def test_segment_argmax_points_at_a_nan() -> None:
    assert ragged.segment_argmax(torch.tensor([1.0, torch.nan, 2.0, 3.0]), cuts_of([3, 1])).tolist() == [1, 3]


@pytest.mark.parametrize("name", ["segment_sum", "segment_mean", "segment_softmax", "segment_argmax"])
def test_segment_operations_name_the_wrong_shape(name: str) -> None:
    with pytest.raises(ValueError, match=r"values must have shape .* got \(2, 1, 1\)"):
        getattr(ragged, name)(torch.zeros(2, 1, 1), cuts_of([2]))


@no_deadline
@given(bag_sizes, st.sampled_from([1, 8, 40, 1 << 20]), st.integers(0, 1000))
def test_padding_there_and_back_in_groups_that_are_not_larger_than_asked(sizes, largest, seed) -> None:
    values, cuts = numbers(sizes, (2,), seed), cuts_of(sizes)
    paddings = ragged.Padding.of(cuts, largest=largest)
    parts = []
    for padding in paddings:
        assert padding.n_bags == 1 or padding.n_bags * padding.longest**2 <= largest
        padded = padding.pad(values)
        assert torch.equal(padded[~padding.mask], torch.zeros(int((~padding.mask).sum()), 2, dtype=torch.float64))
        assert padding.mask.sum(dim=1).max() == padding.longest
        parts.append(padding.flat(padded))
    assert sum(padding.n_bags for padding in paddings) == len(sizes)
    assert torch.equal(ragged.rejoined(paddings, parts), values)


def test_a_bag_of_ten_thousand_does_not_make_small_bags_large() -> None:
    paddings = ragged.Padding.of(cuts_of([3] * 500 + [10_000]), largest=1 << 20)
    assert sorted((p.n_bags, p.longest) for p in paddings) == [(1, 10_000), (500, 3)]


@no_deadline
@given(bag_sizes, st.integers(1, 5), st.sampled_from([1, 10, 1 << 16]), st.integers(0, 1000))
def test_batches_are_what_gathering_each_gives(sizes: list[int], batch_size: int, together: int, seed: int) -> None:
    values, cuts = numbers(sizes, (2,), seed), cuts_of(sizes)
    order = torch.split(torch.randperm(len(sizes), generator=torch.Generator().manual_seed(seed)), batch_size)
    found = list(ragged.batches_of(values, cuts, order, together=together))
    for (rows, offsets), batch in zip(found, order, strict=True):
        expected = ragged.gather_bags(values, cuts, batch)
        assert torch.equal(rows, expected[0])
        assert torch.equal(offsets, expected[1])


def test_the_index_of_segments_is_kept_until_offsets_change() -> None:
    offsets = ragged.remembered(torch.tensor([0, 1, 3]))
    first = ragged.segment_index(offsets)
    assert ragged.segment_index(offsets) is first
    offsets[1] = 2
    assert ragged.segment_index(offsets).tolist() == [0, 0, 1]
    before = len(ragged._INDEX)
    del offsets
    assert len(ragged._INDEX) == before - 1
    with torch.inference_mode():
        assert ragged.segment_index(ragged.remembered(torch.tensor([0, 2]))).tolist() == [0, 0]


def test_the_index_of_segments_is_not_kept_for_memory_of_others() -> None:
    shared = np.array([0, 1, 3])
    offsets = torch.from_numpy(shared)
    assert ragged.segment_index(offsets).tolist() == [0, 1, 1]
    shared[1] = 2  # torch does not notice
    assert ragged.segment_index(offsets).tolist() == [0, 0, 1]
    assert ragged.segment_sum(torch.tensor([1.0, 2.0, 4.0]), offsets).tolist() == [3.0, 4.0]


def test_an_index_of_segments_made_in_inference_mode_does_not_come_into_a_graph() -> None:
    for offsets in (torch.tensor([0, 1, 3]), ragged.remembered(torch.tensor([0, 1, 3]))):
        with torch.inference_mode():
            ragged.segment_max(torch.ones(3), offsets)
        values = torch.ones(3, requires_grad=True)
        ragged.segment_softmax(values, offsets).square().sum().backward()
        assert torch.isfinite(values.grad).all()


def test_a_network_that_trains_or_scores_asks_for_an_index_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    repeat = torch.repeat_interleave

    class Asking(BagMaxNetwork):
        def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            monkeypatch.setattr(torch, "repeat_interleave", lambda *a, **k: made.append(1) or repeat(*a, **k))
            for _ in range(3):
                ragged.segment_index(offsets, n_instances=len(instances))
            monkeypatch.setattr(torch, "repeat_interleave", repeat)
            return super().forward(instances, offsets)

    network = Asking(4, 8)
    loop.fit(network, *data(40), epochs=1, batch_size=10)
    assert len(made) == 4
    loop.scores(network, *data(40)[:2])
    assert len(made) == 5


def test_tanh_is_torchs_to_its_rounding() -> None:
    values = torch.linspace(-20, 20, 10_001)
    assert float((tanh(values) - torch.tanh(values)).abs().max()) < 3e-7
    assert torch.autograd.gradcheck(tanh, (torch.randn(5, dtype=torch.float64, requires_grad=True),))


# ------------------------------------------------------------------------------------------- dropout and witnesses


def test_dropout_quarters_its_random_numbers_and_none_repeats_another() -> None:
    with loop.seeded(0):
        drawn = Dropout(0.5).draw(torch.ones(50_000, 4))
    assert set(drawn.unique().tolist()) == {0.0, 2.0}
    correlations = np.corrcoef(drawn.numpy(), rowvar=False)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(50_000)


@no_deadline
@given(bag_sizes, st.integers(0, 1000), st.sampled_from([0.0, 0.3]))
def test_a_step_on_witnesses_is_the_step_on_all(sizes: list[int], seed: int, p: float) -> None:
    with loop.seeded(seed):
        network = InstanceMaxNetwork(4, 8, p)
        instances = torch.randn(sum(sizes), 4)
        weights = torch.randn(len(sizes))
    cuts = cuts_of(sizes)
    with loop.seeded(seed):
        logits = network(instances, cuts)
    (logits * weights).sum().backward()
    ours = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    with loop.seeded(seed):
        on_all = ragged.segment_max(network.instance_logits(instances), cuts)
    (on_all * weights).sum().backward()
    torch.testing.assert_close(logits, on_all)
    for gradient, parameter in zip(ours, network.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_factors_belong_to_their_rows() -> None:
    network = Perceptron(2, 4, 0.5)
    instances = torch.randn(6, 2)
    seen: list[torch.Tensor] = []

    def score(rows: torch.Tensor, factors: list[torch.Tensor | None]) -> torch.Tensor:
        embedded = network(rows, factors)
        seen.extend(factors)
        return embedded.sum(dim=1)

    rows, factors = witnesses(score, instances, cuts_of([2, 4]))
    assert [torch.equal(a, b[rows]) for a, b in zip(factors, seen, strict=True)] == [True] * 3


# ------------------------------------------------------------------------------------------------ one flat parameter


def test_a_flat_step_is_the_same_step() -> None:
    networks = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    rows = torch.randn(5, 3)
    apart = torch.optim.AdamW(networks[0].parameters(), lr=0.1)
    with flat.flattened(networks[1]) as flat_one:
        together = torch.optim.AdamW([flat_one.whole], lr=0.1)
        for _ in range(3):
            apart.zero_grad()
            flat_one.gradient.zero_()
            for network in networks:
                network(rows).square().sum().backward()
            flat_one.gather()
            apart.step()
            together.step()
    for one, other in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        assert torch.equal(one, other)
        assert other.grad is None
        assert other.untyped_storage().nbytes() == other.numel() * other.element_size()


class Unhooking(BagMaxNetwork):
    """Lets go of the gradients or of the memory that it was given, at every call."""

    sort = "nothing"

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        if self.training and self.sort == "gradients":
            self.zero_grad()
        elif self.training and self.sort == "memory":
            for parameter in self.parameters():
                parameter.data = parameter.detach().clone()
        return super().forward(instances, offsets)


@pytest.mark.parametrize("sort", ["gradients", "memory"])
def test_a_network_that_unhooks_itself_learns_the_same(sort: str) -> None:
    networks = []
    for kind in ("nothing", sort):
        with loop.seeded(0):
            networks.append(Unhooking(4, 8))
        networks[-1].sort = kind
        loop.fit(networks[-1], *data(), epochs=3, clip_norm=0.1)
    with loop.seeded(0):
        untrained = Unhooking(4, 8)
    for one, other, before in zip(*(network.parameters() for network in (*networks, untrained)), strict=True):
        assert torch.equal(one, other)
        assert not torch.equal(one, before)


def test_a_parameter_without_gradient_has_one_of_zero_in_a_step() -> None:
    class Half(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = torch.nn.Parameter(torch.ones(1))
            self.unused = torch.nn.Parameter(torch.ones(1))

        def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            self.zero_grad()
            return instances[offsets[:-1], 0] * self.used

    network = Half()
    loop.fit(network, *data(), epochs=1, weight_decay=0.0)
    assert network.used != 1
    assert network.unused == 1


def test_flattening_needs_parameters_of_one_dtype() -> None:
    mixed = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).double()])
    with pytest.raises(ValueError, match="one dtype"), flat.flattened(mixed):
        pass
    with pytest.raises(ValueError, match="no parameter that can be trained"), flat.flattened(torch.nn.ReLU()):
        pass


def test_a_parameter_that_is_not_to_be_trained_stays() -> None:
    network = BagMaxNetwork(4, 8)
    network.embed[0].weight.requires_grad_(False)
    before = network.embed[0].weight.clone()
    loop.fit(network, *data(), epochs=2)
    assert torch.equal(network.embed[0].weight, before)


# ------------------------------------------------------------------------------------------- stopping and going on


def test_training_stops_on_a_plateau_of_the_training_auc() -> None:
    with loop.seeded(0):
        network = BagMaxNetwork(4, 16, 0.0)
    history = loop.fit(network, *data(), epochs=500, lr=1e-2, patience=3)
    best = int(np.argmax(np.array(history.auc) >= max(history.auc) - 1e-4))
    assert len(history.auc) == len(history.loss) == best + 4 < 500
    assert max(history.auc) == 1.0


def test_patience_looks_at_gains_above_tol() -> None:
    rising = [0.5, 0.6, 0.7, 0.7001, 0.7002]
    assert not loop._settled(rising[:2], 2, 1e-3)
    assert not loop._settled(rising[:4], 2, 1e-3)
    assert loop._settled(rising, 2, 1e-3)
    assert not loop._settled(rising, 2, 1e-5)
    assert not loop._settled(rising, None, 1.0)


def test_history_has_the_auc_of_the_logits_that_were_seen() -> None:
    class Fixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return instances[offsets[:-1], 0] * self.weight

    x, cuts = torch.tensor([[1.0], [3.0], [2.0], [4.0]]), torch.arange(5)
    labels = torch.tensor([0, 0, 1, 1])
    assert loop.fit(Fixed(), x, cuts, labels, epochs=1, batch_size=3, lr=1e-12).auc == [0.75]
    assert np.isnan(loop.fit(Fixed(), x, cuts, labels * 0, epochs=1).auc[0])


class Stopped(Exception):
    pass


@pytest.mark.parametrize("optimizer", ["adamw", "adam"])
def test_a_training_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path, optimizer: str) -> None:
    def fitted(epochs: int, path: Path | None, stop: int | None = None) -> tuple[torch.nn.Module, loop.History]:
        def callback(epoch: int, n_epochs: int, loss: float) -> None:
            if epoch == stop:
                raise Stopped

        with loop.seeded(0):
            network = BagMaxNetwork(4, 8)
        history = loop.fit(
            network, *data(), epochs=epochs, seed=3, checkpoint=path, callback=callback, optimizer=optimizer
        )
        return network, history

    whole, history = fitted(6, None)
    path = tmp_path / "training.pt"
    with pytest.raises(Stopped):
        fitted(6, path, stop=2)
    fitted(4, path)
    resumed, again = fitted(6, path)
    assert again == history
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(ValueError, match=r"training.pt' holds 6 epochs, more than epochs=5"):
        fitted(5, path)
    assert [file.name for file in tmp_path.iterdir()] == ["training.pt"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    loop.fit(BagMaxNetwork(4, 8), *data(), epochs=1, checkpoint=path)
    for other, change in {
        "lr": {"lr": 0.5},
        "seed": {"seed": 9},
        "lr and seed": {"lr": 0.5, "seed": 9},
        "beta": {"identity": {"beta": 2.0}},
        "faults and parameter network": {"faults": ["sorted-batches"], "identity": {"network": "another", "lr": 7}},
    }.items():
        with pytest.raises(ValueError, match=f"belongs to another training, with other {other}: remove"):
            loop.fit(BagMaxNetwork(4, 8), *data(), epochs=1, checkpoint=path, **change)
    with pytest.raises(ValueError, match="other network"):
        loop.fit(BagMaxNetwork(4, 9), *data(), epochs=1, checkpoint=path)
    x, cuts, y = data()
    with pytest.raises(ValueError, match="other instances"):
        loop.fit(BagMaxNetwork(4, 8), x + 1, cuts, y, epochs=1, checkpoint=path)


def first_feature(**parts: torch.nn.Module) -> torch.nn.Module:
    """A network with parts of any kind."""

    class First(torch.nn.ModuleDict):
        def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return self["score"](self["drop"](instances[offsets[:-1]])).squeeze(1)

    return First({"drop": torch.nn.Identity(), "score": torch.nn.Linear(4, 1)} | parts)


def test_a_network_is_known_again_by_what_it_consists_of(tmp_path: Path) -> None:
    class Odd(torch.nn.Identity):
        def __repr__(self) -> str:
            return object.__repr__(self)  # an address, another one in each network

    path = tmp_path / "training.pt"

    def fitted(**parts: torch.nn.Module) -> loop.History:
        with loop.seeded(0):
            network = first_feature(**parts)
        network["drop"].requires_grad_(False)
        return loop.fit(network, *data(), epochs=1, checkpoint=path)

    kept = [Odd(), Odd()]
    assert repr(kept[0]) != repr(kept[1])
    assert fitted(drop=kept[0]) == fitted(drop=kept[1])
    path.unlink()
    fitted(drop=torch.nn.Dropout(0.1))
    fitted(drop=torch.nn.Dropout(0.1))
    for other in (torch.nn.Dropout(0.2), torch.nn.AlphaDropout(0.1), torch.nn.BatchNorm1d(4)):
        with pytest.raises(ValueError, match="other network"):
            fitted(drop=other)
    path.unlink()
    frozen = torch.nn.Linear(4, 4)
    fitted(drop=frozen)
    with torch.no_grad():
        frozen.weight.add_(1)
    with pytest.raises(ValueError, match="other network"):
        fitted(drop=frozen)


def test_a_checkpoint_of_other_sizes_is_not_copied_into_a_network(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    loop.fit(BagMaxNetwork(4, 8), *data(), epochs=1, checkpoint=path)
    kept = torch.load(path)
    kept["state"]["parameter"] = torch.zeros(1)  # would be repeated
    torch.save(kept, path)
    network = BagMaxNetwork(4, 8)
    before = [parameter.clone() for parameter in network.parameters()]
    with pytest.raises(ValueError, match="holds a network of other sizes"):
        loop.fit(network, *data(), epochs=2, checkpoint=path)
    assert all(map(torch.equal, before, network.parameters()))


def test_a_training_goes_on_with_another_patience_only_if_it_would_have_come_so_far(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"

    def fitted(epochs: int, **settings: object) -> loop.History:
        with loop.seeded(0):
            network = BagMaxNetwork(4, 16, 0.0)
        return loop.fit(network, *data(), epochs=epochs, lr=1e-2, checkpoint=path, **settings)

    history = fitted(60)
    assert max(history.auc) == 1.0
    stop = next(epoch for epoch in range(61) if loop._settled(history.auc[:epoch], 3, 1e-4))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"holds 60 epochs, and with patience=3 .* training stops after {stop}: name"):
        fitted(80, patience=3)
    with pytest.raises(ValueError, match=r"with patience=40 and tol=1.0 training stops after 41"):
        fitted(80, patience=40, tol=1.0)
    assert path.read_bytes() == before
    assert len(fitted(62, patience=60).auc) == 62
    path.unlink()
    # what stopped by itself does so again, and goes on with more patience
    stopped = fitted(80, patience=3)
    assert fitted(80, patience=3) == stopped == (history.loss[:stop], history.auc[:stop])
    assert len(fitted(80, patience=4).auc) == stop + 1


def test_an_auc_that_is_nan_is_no_better_than_any() -> None:
    nan = float("nan")
    assert not loop._settled([nan] * 3, 3, 1e-4)
    assert loop._settled([nan] * 4, 3, 1e-4)
    assert loop._settled([0.5, nan, nan], 2, 1e-4)
    assert loop._settled([nan, 0.5, nan, nan], 2, 1e-4)
    assert not loop._settled([nan, nan, nan, 0.5], 2, 1e-4)
    x, cuts, y = data()
    assert len(loop.fit(BagMaxNetwork(4, 8), x, cuts, y * 0, epochs=20, patience=4).auc) == 5


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("code of a checkpoint was run",))


def test_what_is_no_checkpoint_is_refused_and_runs_no_code(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for write in (
        lambda: path.write_bytes(b"something else"),
        lambda: path.write_bytes(b""),
        lambda: torch.save({"format": Trap()}, path),
        lambda: torch.save([1, 2], path),
        lambda: torch.save({"format": 1, "training": None}, path),
        lambda: torch.save({"format": checkpoint.FORMAT, "training": None, "state": {}}, path),
        lambda: torch.save({"format": checkpoint.FORMAT, "training": {}, "state": None}, path),
    ):
        write()
        with pytest.raises(ValueError, match="was not written by milfast"):
            checkpoint.Checkpoint(path, {}).read()
    with pytest.raises(ValueError, match="is a folder"):
        checkpoint.Checkpoint(tmp_path, {})
    with pytest.raises(ValueError, match="does not exist: make it first"):
        checkpoint.Checkpoint(tmp_path / "missing" / "training.pt", {})


def test_an_estimator_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    bags, path = as_bags(), tmp_path / "training.pt"
    whole = BagMINet(hidden=8, epochs=4, random_state=0).fit(bags)
    BagMINet(hidden=8, epochs=2, random_state=0, checkpoint=path).fit(bags)
    seen: list[int] = []
    resumed = BagMINet(hidden=8, epochs=4, random_state=0, checkpoint=path, callback=lambda e, *_: seen.append(e))
    np.testing.assert_array_equal(resumed.fit(bags).decision_function(bags), whole.decision_function(bags))
    assert seen == [3, 4]
    assert resumed.loss_curve_ == whole.loss_curve_
    assert resumed.auc_curve_ == whole.auc_curve_
    with pytest.raises(ValueError, match="checkpoint needs an integer random_state"):
        BagMINet(checkpoint=path).fit(bags)


@pytest.mark.parametrize(
    ("name", "other"),
    [("GNN-MIL", {"neighbours": 3}), ("Hopfield", {"heads": 2}), ("TransMIL", {"landmarks": 2}), ("ABMIL", {"lr": 1})],
)
def test_an_estimator_with_another_parameter_does_not_go_on(name: str, other: dict, tmp_path: Path) -> None:
    kind, bags = mf.models.get(name), as_bags(10)
    fixed = {"hidden": 16, "random_state": 0, "checkpoint": tmp_path / "training.pt"}
    kind(epochs=1, clip_value=5, **fixed).fit(bags)
    kind(epochs=2, clip_value=np.float64(5), patience=7, tol=0.1, callback=print, **fixed).fit(bags)
    (changed,) = other
    with pytest.raises(ValueError, match=rf"with other (network and )?{changed}: remove"):
        kind(epochs=2, clip_value=5, **fixed, **other).fit(bags)


def test_estimators_of_two_classes_have_no_checkpoint_in_common(tmp_path: Path) -> None:
    class Other(BagMINet):
        pass

    fixed = {"hidden": 8, "epochs": 1, "random_state": 0, "checkpoint": tmp_path / "training.pt"}
    BagMINet(**fixed).fit(as_bags())
    with pytest.raises(ValueError, match="with other class: remove"):
        Other(**fixed).fit(as_bags())


class Scaled(torch.nn.Linear):
    def __init__(self, n_features: int, scale: float = 1.0) -> None:
        super().__init__(n_features, 1)
        self.scale = scale

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.scale * super().forward(instances[offsets[:-1]]).squeeze(1)


def test_a_module_of_ones_own_is_known_again_by_its_parameters(tmp_path: Path) -> None:
    fixed = {"epochs": 1, "random_state": 0, "checkpoint": tmp_path / "training.pt"}
    twice, thrice = (functools.partial(Scaled, scale=scale) for scale in (2.0, 3.0))
    ModuleMIL(twice, **fixed).fit(as_bags())
    ModuleMIL(functools.partial(Scaled, scale=2.0), **fixed).fit(as_bags())
    for module in (thrice, Scaled):
        with pytest.raises(ValueError, match="with other module: remove"):
            ModuleMIL(module, **fixed).fit(as_bags())
    with pytest.raises(ValueError, match="with other style: remove"):
        ModuleMIL(twice, style="flat", **fixed).fit(as_bags())


def test_gradients_of_all_parameters_together_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    norms = []
    step = torch.optim.AdamW.step

    def noted(self: torch.optim.AdamW, *args: object) -> object:
        norms.append(float(self.param_groups[0]["params"][0].grad.norm()))
        return step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    loop.fit(BagMaxNetwork(4, 8), *data(), epochs=1, clip_value=None, clip_norm=1e-3)
    assert norms
    assert max(norms) <= 1e-3 * 1.01


def test_deterministic_is_for_the_training_alone() -> None:
    inside, outside = [], []

    class Noting(BagMaxNetwork):
        def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            inside.append(torch.are_deterministic_algorithms_enabled())
            return super().forward(instances, offsets)

    def callback(*_: object) -> None:
        outside.append(torch.are_deterministic_algorithms_enabled())
        # another thread may train meanwhile, and one that is waited for must be able to
        other = threading.Thread(target=loop.fit, args=(BagMaxNetwork(4, 8), *data(4)), kwargs={"epochs": 1})
        other.daemon = True
        other.start()
        other.join(timeout=60)
        assert not other.is_alive()

    loop.fit(Noting(4, 8), *data(), epochs=2, deterministic=True, callback=callback)
    assert inside == [True] * 4
    assert outside == [False] * 2
    assert not torch.are_deterministic_algorithms_enabled()


# -------------------------------------------------------------------------------------------------------- faults


@given(st.integers(4, 200))
def test_the_biased_split_has_five_negatives_of_eight(half: int) -> None:
    labels = torch.tensor([1] * half + [0] * half)
    chosen = notebook.split(labels)
    assert len(chosen) == 2 * half * 4 // 5 == len(set(chosen.tolist()))
    assert labels[chosen].sum() == len(chosen) - half


@no_deadline
@given(bag_sizes, st.integers(1, 5))
def test_sorted_batches_hold_all_bags_by_size(sizes: list[int], batch_size: int) -> None:
    batches = notebook.sorted_batches(torch.tensor(sizes), batch_size)
    assert sorted(torch.cat(batches).tolist()) == list(range(len(sizes)))
    in_order = torch.tensor(sizes)[torch.cat(batches)].tolist()
    assert in_order == sorted(sizes, reverse=True)
    assert max(map(len, batches)) <= batch_size


def test_sorted_batches_are_small_when_bags_are_large() -> None:
    assert [len(b) for b in notebook.sorted_batches(torch.tensor([3000, 2000, 2000, 6000]), 32)] == [1, 1, 2]


def test_each_fault_changes_what_is_learnt_and_unmasked_padding_what_is_scored() -> None:
    bags = as_bags(60)
    sound = BagMINet(hidden=8, epochs=2, random_state=0).fit(bags).decision_function(bags)
    for fault in notebook.FAULTS:
        model = BagMINet(hidden=8, epochs=2, random_state=0, faults=fault).fit(bags)
        assert not np.allclose(model.decision_function(bags), sound)
    assert model.faults == "unmasked-padding"
    large = int(np.argmax(bags.sizes))
    small = int(np.argmin(bags.sizes))
    together = model.decision_function(bags[[small, large]])[0]
    assert together != pytest.approx(model.decision_function(bags[[small]])[0], abs=1e-6)


def test_unmasked_padding_scores_zeros_as_instances() -> None:
    x, cuts, _ = data(5)
    network = InstanceMaxNetwork(4, 8)
    padded, padded_cuts = notebook.pad_with_zeros(x, cuts)
    expected = loop.scores(network, padded, padded_cuts)
    torch.testing.assert_close(loop.scores(network, x, cuts, faulty_batch=32), expected)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"faults": "padding"}, ValueError, "faults must be among biased-split, sorted-batches, unmasked-padding; got"),
        ({"faults": 3}, TypeError, "faults must be a sequence of names"),
        ({"patience": 0}, ValueError, "patience must be at least 1"),
        ({"tol": -1.0}, ValueError, "tol must be at least 0"),
        ({"clip_norm": 0}, ValueError, "clip_norm must be above 0"),
        ({"clip_value": "a"}, TypeError, "clip_value must be a number"),
        ({"optimizer": "sgd"}, ValueError, "optimizer must be one of adamw, adam"),
        ({"deterministic": 1}, TypeError, "deterministic must be True or False"),
    ],
)
def test_wrong_parameters(parameters: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        InstanceMINet(**parameters).fit(as_bags())


def test_a_model_with_its_own_loss() -> None:
    class Twice(BagMaxNetwork):
        def training_loss(self, instances, offsets, labels):
            logits = self(instances, offsets)
            return 2 * torch.nn.functional.binary_cross_entropy_with_logits(logits, labels), logits

    losses = []
    for kind in (BagMaxNetwork, Twice):
        with loop.seeded(0):
            network = kind(4, 8)
        losses.append(loop.fit(network, *data(), epochs=1, batch_size=100).loss[0])
    assert losses[1] == pytest.approx(2 * losses[0])


# ------------------------------------------------------------------------------------------ what is said of mistakes


def test_an_unknown_fault_is_told_what_there_is_as_the_page_has_it() -> None:
    with pytest.raises(ValueError, match="got 'padding'") as raised:
        notebook.checked("padding")
    page = (ROOT / "docs" / "models.md").read_text()
    for name, text in notebook.FAULTS.items():
        assert f"{name}: {text}" in str(raised.value)
        assert f"| `{name}` | {text} |" in page


def test_a_network_without_parameters_has_a_device() -> None:
    assert devices.device_of(torch.nn.ReLU()) == torch.device("cpu")
    assert devices.device_of(torch.nn.BatchNorm1d(1, affine=False, device="meta")) == torch.device("meta")


class Broken(torch.nn.Linear):
    """Gives NaN: always, or for bags of three instances or more."""

    def __init__(self, n_features: int, *, always: bool = False) -> None:
        super().__init__(n_features, 1)
        self.always = always

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        logits = super().forward(instances[offsets[:-1]]).squeeze(1)
        large = (offsets.diff() >= 3) & (not self.training)
        return torch.where(large | self.always, torch.nan, logits)


def test_a_network_that_gives_nan_before_any_step_is_not_blamed_on_lr() -> None:
    with pytest.raises(FloatingPointError, match="first batch is nan, before any step was taken") as raised:
        loop.fit(Broken(4, always=True), *data(), epochs=2)
    assert "lr" not in str(raised.value)
    with pytest.raises(FloatingPointError, match=r"in epoch \d of 50: standardise the features or lower lr"):
        loop.fit(BagMaxNetwork(4, 8), *data(), epochs=50, lr=1e30, clip_value=None)


def test_a_logit_that_is_nan_is_an_error_that_names_the_bag() -> None:
    class Sometimes(BagMINet):
        def build(self, n_features: int) -> torch.nn.Module:
            return Broken(n_features)

    bags = as_bags()
    model = Sometimes(epochs=1, random_state=0).fit(bags)
    large = np.flatnonzero(bags.sizes >= 3)
    for method in (model.decision_function, model.predict_proba, model.predict):
        with pytest.raises(
            FloatingPointError, match=rf"bag {large[0]} is NaN, the first of {len(large)} among 40 bags"
        ):
            method(bags)
    small = bags[np.flatnonzero(bags.sizes < 3)]
    assert np.isfinite(model.decision_function(small)).all()
