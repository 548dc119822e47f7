"""Deep models, their training loop and the segment operations underneath."""

from __future__ import annotations

import pickle
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from milfast.bags import Bags

torch = pytest.importorskip("torch")

from milfast.models.deep.bag_mi_net import BagMaxNetwork, BagMINet  # noqa: E402
from milfast.models.deep.instance_mi_net import InstanceMaxNetwork, InstanceMINet  # noqa: E402
from milfast.models.deep.layers import Dropout  # noqa: E402
from milfast.training import loop, ragged  # noqa: E402

if TYPE_CHECKING:
    from milfast.models.deep.base import DeepMIL

MODELS = [InstanceMINet, BagMINet]
NETWORKS = [InstanceMaxNetwork, BagMaxNetwork]
each_model = pytest.mark.parametrize("model_class", MODELS)
each_network = pytest.mark.parametrize("network_class", NETWORKS)

# The first call of a torch operation takes far longer than the next.
no_deadline = settings(deadline=None)

bag_sizes = st.lists(st.integers(1, 6), min_size=1, max_size=12)
rows_4d = arrays(
    np.float32, st.tuples(st.integers(1, 8), st.just(4)), elements=st.floats(-50, 50, width=32, allow_subnormal=False)
)


def make_bags(n_bags: int, seed: int, dtype: str = "float64") -> Bags:
    """Bags of 1 to 6 noise instances in four dimensions; in positive ones, one instance lies at 5 in the first two."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, n_bags)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = np.arange(n_bags) % 2
    instances = rng.normal(size=(offsets[-1], 4))
    instances[offsets[:-1][labels == 1], :2] += 5
    return Bags(instances.astype(dtype), offsets, labels)


def cuts_of(sizes: list[int]) -> torch.Tensor:
    return torch.tensor(np.concatenate(([0], np.cumsum(sizes))))


def global_state() -> list[int]:
    return torch.get_rng_state().tolist()


@pytest.fixture(scope="module")
def bags() -> Bags:
    return make_bags(60, seed=0)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest, bags: Bags) -> DeepMIL:
    return request.param(hidden=16, epochs=3, random_state=0).fit(bags)


# -------------------------------------------------------------------------------------------- segment operations


@no_deadline
@given(bag_sizes)
def test_segment_index_repeats_bag_numbers(sizes: list[int]) -> None:
    expected = [bag for bag, size in enumerate(sizes) for _ in range(size)]
    assert ragged.segment_index(cuts_of(sizes)).tolist() == expected
    assert ragged.segment_index(cuts_of(sizes), n_instances=sum(sizes)).tolist() == expected


@no_deadline
@given(bag_sizes, st.sampled_from([(), (1,), (3,)]), st.integers(0, 1000))
def test_segment_max_is_a_loop_over_bags_with_its_gradient(sizes: list[int], extra: tuple[int, ...], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    ours = torch.randn((sum(sizes), *extra), dtype=torch.float64, generator=generator).requires_grad_()
    weights = torch.randn((len(sizes), *extra), dtype=torch.float64, generator=generator)
    loops = ours.detach().clone().requires_grad_()
    cuts = cuts_of(sizes)

    maximum = ragged.segment_max(ours, cuts)
    expected = torch.stack([loops[a:b].max(dim=0).values for a, b in pairwise(cuts.tolist())])
    assert torch.equal(maximum, expected)
    (maximum * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.equal(ours.grad, loops.grad)


def test_segment_max_gradcheck() -> None:
    values = torch.randn((7, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: ragged.segment_max(v, cuts_of([1, 4, 2])), (values,))


def test_segment_max_shares_the_gradient_between_ties() -> None:
    values = torch.tensor([3.0, 3.0, 1.0], requires_grad=True)
    ragged.segment_max(values, cuts_of([3])).sum().backward()
    assert values.grad.tolist() == [0.5, 0.5, 0.0]


def test_segment_max_of_single_instances_is_the_identity() -> None:
    values = torch.tensor([2.0, -1.0, -torch.inf])
    assert torch.equal(ragged.segment_max(values, cuts_of([1, 1, 1])), values)


def test_segment_max_keeps_nan_in_its_bag() -> None:
    maximum = ragged.segment_max(torch.tensor([1.0, torch.nan, 2.0, 3.0]), cuts_of([2, 2]))
    assert maximum[0].isnan()
    assert maximum[1] == 3


def test_segment_operations_name_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"values must have shape .* got \(2, 1, 1\)"):
        ragged.segment_max(torch.zeros(2, 1, 1), cuts_of([2]))
    with pytest.raises(ValueError, match="offsets must have shape"):
        ragged.segment_index(torch.zeros((1, 2), dtype=torch.int64))


@no_deadline
@given(bag_sizes, st.data())
def test_gather_bags_joins_the_chosen_bags(sizes: list[int], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=15))
    instances = torch.arange(2 * sum(sizes)).reshape(-1, 2)
    cuts = cuts_of(sizes)
    rows, offsets = ragged.gather_bags(instances, cuts, torch.tensor(chosen))
    assert torch.equal(rows, torch.cat([instances[cuts[i] : cuts[i + 1]] for i in chosen]))
    assert offsets.diff().tolist() == [sizes[i] for i in chosen]


def test_gather_bags_refuses_a_bag_out_of_range() -> None:
    with pytest.raises(IndexError):
        ragged.gather_bags(torch.zeros(3, 1), cuts_of([1, 2]), torch.tensor([2]))


# ------------------------------------------------------------------------------------------------------ networks


@each_network
def test_parameter_count(network_class: type[torch.nn.Module]) -> None:
    assert sum(p.numel() for p in network_class(16, 128).parameters()) == 35_329


@each_network
@no_deadline
@given(bag_sizes, st.integers(0, 1000))
def test_network_scores_a_bag_alone_as_in_a_batch(
    network_class: type[torch.nn.Module], sizes: list[int], seed: int
) -> None:
    with loop.seeded(seed):
        network = network_class(4, 16).eval()
        instances = torch.randn(sum(sizes), 4)
    cuts = cuts_of(sizes)
    together = loop.scores(network, instances, cuts)
    alone = [loop.scores(network, instances[a:b], torch.tensor([0, b - a])) for a, b in pairwise(cuts.tolist())]
    assert torch.allclose(together, torch.cat(alone), rtol=0, atol=1e-6)


@no_deadline
@given(rows_4d, arrays(np.float32, (1, 4), elements=st.floats(-50, 50, width=32)), st.integers(0, 1000))
def test_mi_net_never_falls_when_an_instance_is_added(bag: np.ndarray, more: np.ndarray, seed: int) -> None:
    with loop.seeded(seed):
        network = InstanceMaxNetwork(4, 16)
    small = loop.scores(network, torch.tensor(bag), cuts_of([len(bag)]))
    large = loop.scores(network, torch.tensor(np.concatenate((bag, more))), cuts_of([len(bag) + 1]))
    assert large >= small - 1e-5


def test_mi_net_logit_is_the_largest_instance_logit(bags: Bags) -> None:
    model = InstanceMINet(hidden=16, epochs=1, random_state=0).fit(bags)
    instance = model.instance_scores(bags)
    assert instance.shape == (bags.n_instances,)
    assert instance.dtype == np.float64
    np.testing.assert_allclose(model.decision_function(bags), np.maximum.reduceat(instance, bags.offsets[:-1]))


def test_bag_mi_net_can_fall_when_an_instance_is_added() -> None:
    network = BagMaxNetwork(1, 4, dropout=0.0)
    with torch.no_grad():
        network.head.weight.fill_(-1.0)
        for layer in network.embed:
            if isinstance(layer, torch.nn.Linear):
                layer.weight.fill_(1.0)
    small = loop.scores(network, torch.tensor([[0.0]]), cuts_of([1]))
    large = loop.scores(network, torch.tensor([[0.0], [3.0]]), cuts_of([2]))
    assert large < small - 1


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(p: float) -> None:
    with loop.seeded(0):
        values = Dropout(p)(torch.ones(200_000))
    kept = values[values != 0]
    assert abs(1 - len(kept) / len(values) - p) < 0.01
    assert torch.allclose(kept, torch.tensor(1 / (1 - p)))


def test_dropout_is_the_identity_when_off() -> None:
    values = torch.ones(100)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values
    assert repr(Dropout(0.5)) == "Dropout(p=0.5)"


# ---------------------------------------------------------------------------------------------------------- loop


def flat(bags: Bags) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(torch.tensor(a) for a in (bags.instances.astype(np.float32), bags.offsets, bags.labels))


class Recorder(torch.nn.Module):
    """Sums a bag's first feature and notes the bags that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.seen: list[list[float]] = []

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        assert self.training
        first = instances[offsets[:-1], 0]
        self.seen.append(first.tolist())
        return first * self.weight


def test_each_epoch_sees_each_bag_once_in_a_new_order_last_short_batch_kept() -> None:
    module = Recorder().eval()
    instances = torch.arange(10.0)[:, None]
    labels = torch.arange(10) % 2
    losses, _ = loop.fit(module, instances, torch.arange(11), labels, epochs=2, batch_size=4, seed=0)
    assert [len(batch) for batch in module.seen] == [4, 4, 2] * 2
    first, second = list(chain(*module.seen[:3])), list(chain(*module.seen[3:]))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    assert len(losses) == 2
    assert not module.training


def test_epoch_loss_is_the_mean_over_bags() -> None:
    instances = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0]])
    labels = torch.tensor([0, 1, 0, 1, 0])
    (loss,), _ = loop.fit(Recorder(), instances, torch.arange(6), labels, epochs=1, batch_size=2, lr=1e-12)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(instances[:, 0], labels.float())
    assert loss == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("optimizer", ["adamw", "adam"])
def test_loop_lowers_the_loss(optimizer: str, bags: Bags) -> None:
    with loop.seeded(0):
        network = BagMaxNetwork(4, 16)
    losses, _ = loop.fit(network, *flat(bags), epochs=15, lr=1e-2, optimizer=optimizer)
    assert losses[-1] < 0.7 * losses[0]


def test_clamp_gradients_turns_nan_to_zero_and_bounds_entries() -> None:
    parameter, bare = torch.nn.Parameter(torch.zeros(5)), torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.tensor([torch.nan, 7.0, -torch.inf, torch.inf, -1.0])
    loop.clamp_gradients(parameter, 5.0)
    loop.clamp_gradients(bare, 5.0)
    assert parameter.grad.tolist() == [0.0, 5.0, -5.0, 5.0, -1.0]
    assert bare.grad is None


class RootOfZero(torch.nn.Module):
    """A finite loss with a NaN gradient: the derivative of ``sqrt(0) * 0``."""

    def __init__(self) -> None:
        super().__init__()
        self.bad = torch.nn.Parameter(torch.zeros(1))
        self.good = torch.nn.Parameter(torch.ones(1))

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return instances[offsets[:-1], 0] * self.good + self.bad.sqrt() * 0


@pytest.mark.parametrize(("clip_value", "survives"), [(5.0, True), (None, False)])
def test_a_nan_gradient_entry_is_a_zero_step_only_when_clamped(clip_value: float | None, survives: bool) -> None:
    module = RootOfZero()
    data = torch.ones(4, 1), torch.arange(5), torch.tensor([0, 1, 0, 0])
    loop.fit(module, *data, epochs=1, batch_size=4, clip_value=clip_value)
    assert bool(torch.isfinite(module.bad).all()) is survives
    assert module.good != 1


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(
        FloatingPointError, match=r"first batch is nan, before any step was taken: the network gives NaN"
    ):
        loop.fit(Recorder(), torch.full((2, 1), torch.nan), torch.arange(3), torch.tensor([0, 1]), epochs=3)
    with pytest.raises(FloatingPointError, match=r"loss became nan in epoch \d of 3: .* lower lr"):
        loop.fit(RootOfZero(), torch.ones(2, 1), torch.arange(3), torch.tensor([0, 1]), epochs=3, clip_value=None)


def test_loop_names_wrong_arguments() -> None:
    x, cuts, y = torch.ones(2, 1), torch.arange(3), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="optimizer must be one of adamw, adam; got 'sgd'"):
        loop.fit(Recorder(), x, cuts, y, optimizer="sgd")
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\)"):
        loop.fit(Recorder(), x, cuts, y[:1])
    with pytest.raises(ValueError, match="offsets must end with 2"):
        loop.fit(Recorder(), x, torch.tensor([0, 1, 3]), y)


def test_callback_sees_every_epoch_and_cannot_change_the_training(bags: Bags) -> None:
    calls: list[tuple[int, int, float]] = []

    def callback(epoch: int, n_epochs: int, loss: float) -> None:
        calls.append((epoch, n_epochs, loss))
        torch.rand(3)
        InstanceMINet(hidden=4, epochs=1, random_state=5).fit(bags)

    quiet = BagMINet(hidden=8, epochs=3, random_state=0).fit(bags)
    with loop.seeded(0):
        loud = BagMINet(hidden=8, epochs=3, random_state=0, callback=callback).fit(bags)
    assert calls == [(epoch, 3, loss) for epoch, loss in enumerate(loud.loss_curve_, start=1)]
    np.testing.assert_array_equal(quiet.decision_function(bags), loud.decision_function(bags))


@pytest.mark.parametrize("batch_instances", [1, 7, 10_000])
def test_scores_do_not_depend_on_the_block_size(batch_instances: int, bags: Bags) -> None:
    instances, offsets, _ = flat(bags)
    with loop.seeded(0):
        network = InstanceMaxNetwork(4, 16)
    expected = loop.scores(network, instances, offsets)
    assert torch.allclose(
        loop.scores(network, instances, offsets, batch_instances=batch_instances), expected, rtol=0, atol=1e-6
    )


def test_scoring_restores_the_mode_of_every_part(bags: Bags) -> None:
    instances, offsets, _ = flat(bags)
    network = InstanceMaxNetwork(4, 16)
    network.head.eval()
    scores = loop.scores(network, instances, offsets)
    assert network.training
    assert network.embed.training
    assert not network.head.training
    assert not scores.requires_grad
    assert torch.equal(scores, loop.scores(network, instances, offsets))


def test_seeded_restores_the_generator_after_an_error() -> None:
    before = global_state()
    with pytest.raises(RuntimeError), loop.seeded(3):
        torch.rand(5) @ torch.rand(4)
    assert global_state() == before


# ----------------------------------------------------------------------------------------------------- estimator


@each_model
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learns_a_trivial_problem(model_class: type[DeepMIL], dtype: str) -> None:
    model = model_class(hidden=32, epochs=15, random_state=0).fit(make_bags(200, seed=1, dtype=dtype))
    fresh = make_bags(200, seed=2, dtype=dtype)
    assert roc_auc_score(fresh.labels, model.decision_function(fresh)) > 0.95


def test_outputs(fitted: DeepMIL, bags: Bags) -> None:
    logits, probabilities, labels = (
        fitted.decision_function(bags),
        fitted.predict_proba(bags),
        fitted.predict(bags),
    )
    assert logits.shape == labels.shape == (bags.n_bags,)
    assert logits.dtype == probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-logits)))
    np.testing.assert_array_equal(labels, (logits > 0).astype(int))
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.n_features_in_ == 4
    assert len(fitted.loss_curve_) == 3
    assert fitted.family == "deep"
    assert fitted.claims == "standard"


def test_a_bag_scores_alone_as_in_a_batch(fitted: DeepMIL, bags: Bags) -> None:
    alone = np.concatenate([fitted.decision_function(bags[[i]]) for i in range(bags.n_bags)])
    np.testing.assert_allclose(alone, fitted.decision_function(bags), rtol=0, atol=1e-6)


def test_the_order_of_instances_does_not_matter(fitted: DeepMIL, bags: Bags) -> None:
    rng = np.random.default_rng(3)
    mixed = np.concatenate([rng.permutation(bag) for bag in bags])
    np.testing.assert_allclose(
        fitted.decision_function(bags.with_instances(mixed)), fitted.decision_function(bags), rtol=0, atol=1e-6
    )


def test_repeating_an_instance_does_not_matter(fitted: DeepMIL, bags: Bags) -> None:
    twice = Bags(np.repeat(bags.instances, 2, axis=0), 2 * bags.offsets)
    np.testing.assert_allclose(fitted.decision_function(twice), fitted.decision_function(bags), rtol=0, atol=1e-6)


@each_model
def test_a_seed_decides_every_bit(model_class: type[DeepMIL], bags: Bags) -> None:
    def logits(random_state: int) -> np.ndarray:
        return model_class(hidden=8, epochs=2, random_state=random_state).fit(bags).decision_function(bags)

    with loop.seeded(1):
        first = logits(0)
    np.testing.assert_array_equal(first, logits(0))
    assert (first != logits(1)).all()


def test_a_seed_decides_shuffling_and_dropout_too(bags: Bags) -> None:
    class SameStart(InstanceMINet):
        def build(self, n_features: int) -> torch.nn.Module:
            with loop.seeded(0):
                return super().build(n_features)

    first, second = (SameStart(hidden=8, epochs=1, random_state=seed).fit(bags) for seed in (0, 1))
    assert first.loss_curve_ != second.loss_curve_


def test_no_random_state_means_a_new_fit_each_time(bags: Bags) -> None:
    a, b = (InstanceMINet(hidden=8, epochs=1).fit(bags).decision_function(bags) for _ in range(2))
    assert (a != b).all()


@each_model
def test_global_generators_and_threads_are_left_alone(model_class: type[DeepMIL], bags: Bags) -> None:
    torch_before, numpy_before, threads = global_state(), np.random.get_state()[1].tolist(), torch.get_num_threads()
    model = model_class(hidden=8, epochs=2, random_state=0).fit(bags)
    model.predict(bags)
    assert global_state() == torch_before
    assert np.random.get_state()[1].tolist() == numpy_before
    assert torch.get_num_threads() == threads


def test_dropout_is_off_when_scoring(fitted: DeepMIL, bags: Bags) -> None:
    fitted.module_.train()
    np.testing.assert_array_equal(fitted.decision_function(bags), fitted.decision_function(bags))


@settings(max_examples=20, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_standardising_undoes_shift_and_scale(shift: float, factor: float) -> None:
    bags = make_bags(12, seed=4)
    model = InstanceMINet(hidden=8, epochs=1, random_state=0).fit(bags)
    moved = bags.with_instances(bags.instances * factor + shift)
    again = InstanceMINet(hidden=8, epochs=1, random_state=0).fit(moved)
    np.testing.assert_allclose(again.decision_function(moved), model.decision_function(bags), atol=1e-3)


@each_model
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_feature_is_harmless(model_class: type[DeepMIL], constant: float, bags: Bags) -> None:
    instances = bags.instances.copy()
    instances[:, 3] = constant
    model = model_class(hidden=8, epochs=1, random_state=0).fit(bags.with_instances(instances))
    assert model.scale_[3] == 1
    assert np.isfinite(model.decision_function(bags)).all()


def test_a_deviation_that_underflows_is_not_divided_by(bags: Bags) -> None:
    instances = bags.instances.copy()
    instances[:, 3] = np.arange(len(instances)) * 1e-250
    model = InstanceMINet(hidden=8, epochs=1, random_state=0).fit(bags.with_instances(instances))
    assert model.scale_[3] == 1


def test_standardising_can_be_switched_off(bags: Bags) -> None:
    model = BagMINet(hidden=8, epochs=1, standardize=False, random_state=0).fit(bags)
    assert model.mean_.tolist() == [0] * 4
    assert model.scale_.tolist() == [1] * 4


def test_pickle_round_trip(fitted: DeepMIL, bags: Bags) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(bags), fitted.decision_function(bags))


@each_model
def test_an_unfitted_model_pickles_and_clones(model_class: type[DeepMIL]) -> None:
    model = model_class(hidden=8, random_state=3, lr=0.5)
    assert pickle.loads(pickle.dumps(model)).get_params() == clone(model).get_params() == model.get_params()
    assert model.set_params(epochs=7).epochs == 7


def test_clone_forgets_what_was_learnt(fitted: DeepMIL, bags: Bags) -> None:
    fresh = clone(fitted)
    assert not hasattr(fresh, "module_")
    np.testing.assert_array_equal(fresh.fit(bags).decision_function(bags), fitted.decision_function(bags))


# -------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("method", ["decision_function", "predict", "predict_proba", "instance_scores"])
def test_scoring_before_fit(method: str, bags: Bags) -> None:
    with pytest.raises(NotFittedError, match="InstanceMINet"):
        getattr(InstanceMINet(), method)(bags)


def test_only_models_with_instance_scores_have_them(bags: Bags) -> None:
    with pytest.raises(TypeError, match="BagMINet scores bags only"):
        BagMINet(hidden=4, epochs=1, random_state=0).fit(bags).instance_scores(bags)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"hidden": 0}, ValueError, "hidden must be at least 1; got 0"),
        ({"hidden": 8.0}, TypeError, "hidden must be an integer; got 8.0"),
        ({"epochs": -1}, ValueError, "epochs must be at least 1"),
        ({"epochs": True}, TypeError, "epochs must be an integer"),
        ({"batch_size": "32"}, TypeError, "batch_size must be an integer"),
        ({"lr": 0}, ValueError, "lr must be above 0 and finite"),
        ({"lr": np.nan}, ValueError, "lr must be above 0 and finite"),
        ({"lr": None}, TypeError, "lr must be a number"),
        ({"weight_decay": -1e-9}, ValueError, "weight_decay must be at least 0"),
        ({"dropout": 1}, ValueError, r"dropout must be in \[0, 1\)"),
        ({"dropout": True}, TypeError, "dropout must be a number"),
        ({"standardize": "yes"}, TypeError, "standardize must be True or False"),
        ({"device": "tpu9"}, ValueError, "device 'tpu9' is unknown to torch: use 'cpu'"),
        ({"device": "meta"}, ValueError, "device 'meta' cannot be used on this machine: use device='cpu'"),
        ({"device": 0}, TypeError, "device must be a string or a torch.device; got int"),
        ({"random_state": -1}, ValueError, "random_state must not be negative"),
        ({"random_state": "a"}, TypeError, "random_state must be"),
        ({"callback": 1}, TypeError, "callback must be callable"),
    ],
)
def test_wrong_parameters(
    parameters: dict[str, object], error: type[Exception], message: str, bags: Bags, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InstanceMINet, "build", lambda *_: pytest.fail("work began before the check"))
    with pytest.raises(error, match=message):
        InstanceMINet(**parameters).fit(bags)


@pytest.mark.skipif(torch.cuda.is_available(), reason="has the device that must be missing")
def test_a_missing_gpu(bags: Bags) -> None:
    with pytest.raises(ValueError, match="device 'cuda' cannot be used on this machine"):
        InstanceMINet(device="cuda").fit(bags)


def test_wrong_bags(fitted: DeepMIL, bags: Bags) -> None:
    model = clone(fitted)
    with pytest.raises(
        TypeError, match=r"bags must be milfast\.Bags; got list: join a list of arrays by Bags.from_list"
    ):
        model.fit([bags.instances])
    with pytest.raises(ValueError, match="bags has no labels to learn from"):
        model.fit(Bags(bags.instances, bags.offsets))
    with pytest.raises(ValueError, match="y must be None: labels are part of bags"):
        model.fit(bags, bags.labels)
    for label in (0, 1):
        with pytest.raises(ValueError, match=f"all 30 labels in bags are {label}: training needs bags of both classes"):
            model.fit(bags[bags.labels == label])
    with pytest.raises(ValueError, match=r"bags has 3 features, but .* was fitted on 4"):
        fitted.predict(bags.with_instances(bags.instances[:, :3]))
    with pytest.raises(TypeError, match="bags must be"):
        fitted.predict(bags.instances)


def test_values_too_large_for_the_arithmetic(fitted: DeepMIL, bags: Bags) -> None:
    huge = bags.instances.copy()
    huge[5, 2] = 1e300
    with pytest.raises(ValueError, match="feature 2 of bags is too large for its variance"):
        clone(fitted).fit(bags.with_instances(huge))
    with pytest.raises(ValueError, match=r"instances\[5\] of bags does not fit float32"):
        fitted.decision_function(bags.with_instances(huge))


def test_a_failed_refit_keeps_the_old_model(fitted: DeepMIL, bags: Bags) -> None:
    model = pickle.loads(pickle.dumps(fitted))
    before = model.decision_function(bags)
    with pytest.raises(FloatingPointError):
        model.set_params(lr=1e30, epochs=5).fit(bags)
    np.testing.assert_array_equal(model.decision_function(bags), before)
