"""What holds for each deep model in the registry; a new file in models/deep is picked up."""

from __future__ import annotations

import inspect
import pickle
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import milfast as mf
from milfast.bags import Bags

torch = pytest.importorskip("torch")

from milfast.models.deep.base import DeepMIL  # noqa: E402
from milfast.models.deep.wrap import ModuleMIL  # noqa: E402
from milfast.training import loop  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

NAMES = mf.models.names("deep")
each = pytest.mark.parametrize("name", NAMES)


def make_bags(n_bags: int, seed: int, most: int = 6) -> Bags:
    """Bags of 1 to `most` noise instances in four dimensions; positive ones hold one at (4, 0, -4, 0)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, n_bags)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = np.arange(n_bags) % 2
    instances = rng.normal(size=(offsets[-1], 4))
    instances[offsets[:-1][labels == 1]] += [4, 0, -4, 0]
    return Bags(instances, offsets, labels)


def small(name: str, **parameters: Any) -> DeepMIL:
    model: DeepMIL = mf.models.get(name)(**{"hidden": 16, "epochs": 2, "random_state": 0} | parameters)
    return model


@cache
def fitted(name: str) -> DeepMIL:
    return small(name).fit(make_bags(60, seed=0))


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal to 1e-6 of a logit, or of the largest logit where that is above 1."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * max(1.0, float(np.abs(expected).max())))


@each
def test_says_what_it_is(name: str) -> None:
    kind = mf.models.get(name)
    assert issubclass(kind, DeepMIL)
    assert kind.family == "deep"
    assert mf.models.name_of(kind()) == name
    assert kind.__doc__
    assert kind.__init__.__kwdefaults__ is None or all(p in kind().get_params() for p in kind.__init__.__kwdefaults__)
    assert repr(kind()) == f"{kind.__name__}()"
    assert "random_state=3" in repr(kind(random_state=3))


@each
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(0, 1000))
def test_a_bag_scores_alone_as_in_a_batch(name: str, sizes: list[int], seed: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    bags = Bags(np.random.default_rng(seed).normal(size=(offsets[-1], 4)), offsets)
    together = fitted(name).decision_function(bags)
    close(np.concatenate([fitted(name).decision_function(bags[[i]]) for i in range(len(bags))]), together)
    close(fitted(name).decision_function(bags[::-1]), together[::-1])


@each
def test_a_bag_of_a_thousand_beside_small_ones(name: str) -> None:
    sizes = np.array([3] * 40 + [1000] + [2] * 40)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    bags = Bags(np.random.default_rng(0).normal(size=(offsets[-1], 4)), offsets)
    together = fitted(name).decision_function(bags)
    close(fitted(name).decision_function(bags[[0, 40, 80]]), together[[0, 40, 80]])


@each
def test_the_order_of_instances_does_not_matter(name: str) -> None:
    bags = make_bags(60, seed=1)
    rng = np.random.default_rng(3)
    mixed = bags.with_instances(np.concatenate([rng.permutation(bag) for bag in bags]))
    before, after = (fitted(name).decision_function(b) for b in (bags, mixed))
    if getattr(type(fitted(name)), "order_matters", False):
        assert np.abs(after - before).max() > 1e-3
    else:
        close(after, before)


@each
def test_a_seed_decides_every_bit_and_nothing_else_is_touched(name: str) -> None:
    bags = make_bags(40, seed=0)
    before = torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), torch.get_num_threads()
    first, again, other = (
        small(name, random_state=seed).fit(bags).decision_function(bags) for seed in (0, np.int64(0), 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), torch.get_num_threads()) == before


@each
def test_learns_a_trivial_problem(name: str) -> None:
    model = small(name, hidden=32, epochs=30, lr=5e-3).fit(make_bags(200, seed=1))
    fresh = make_bags(200, seed=2)
    assert roc_auc_score(fresh.labels, model.decision_function(fresh)) > 0.9
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    assert len(model.auc_curve_) == 30


@each
def test_bags_of_one_instance(name: str) -> None:
    bags = make_bags(40, seed=4, most=1)
    scores = small(name).fit(bags).decision_function(bags)
    assert scores.shape == (40,)
    assert np.isfinite(scores).all()


@each
def test_more_features_and_a_batch_that_ends_with_one_bag(name: str) -> None:
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(90, 40)), np.arange(0, 91, 10), np.arange(9) % 2)
    assert np.isfinite(small(name, batch_size=4).fit(bags).decision_function(bags)).all()


@each
def test_goes_on_from_a_checkpoint_to_the_same_bits(name: str, tmp_path: Path) -> None:
    bags = make_bags(40, seed=0)
    whole = small(name, epochs=3).fit(bags)
    small(name, epochs=1, checkpoint=tmp_path / "c.pt").fit(bags)
    resumed = small(name, epochs=3, checkpoint=tmp_path / "c.pt").fit(bags)
    np.testing.assert_array_equal(resumed.decision_function(bags), whole.decision_function(bags))


@each
def test_pickles_and_clones(name: str) -> None:
    bags = make_bags(40, seed=0)
    again = pickle.loads(pickle.dumps(fitted(name)))
    np.testing.assert_array_equal(again.decision_function(bags), fitted(name).decision_function(bags))
    fresh = clone(fitted(name))
    assert not hasattr(fresh, "module_")
    assert fresh.get_params() == fitted(name).get_params()


@each
def test_instance_scores_or_a_reason_why_not(name: str) -> None:
    bags = make_bags(40, seed=0)
    if hasattr(fitted(name).module_, "instance_logits"):
        assert fitted(name).instance_scores(bags).shape == (bags.n_instances,)
    else:
        with pytest.raises(TypeError, match="scores bags only"):
            fitted(name).instance_scores(bags)


@each
def test_parameters_are_looked_at_before_any_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(name)
    monkeypatch.setattr(type(model), "build", lambda *_: pytest.fail("work began before the check"))
    own = [p for p in type(model)().get_params() if p not in DeepMIL.__init__.__kwdefaults__]
    for parameter in (*own, "lr", "hidden"):
        with pytest.raises((TypeError, ValueError), match=parameter):
            clone(model).set_params(**{parameter: "nonsense"}).fit(make_bags(10, seed=0))


@each
def test_each_parameter_of_a_network_has_a_gradient_of_its_own(name: str) -> None:
    model = small(name)
    with loop.seeded(0):
        network = model.build(4)
    bags = make_bags(8, seed=0)
    instances = torch.tensor(bags.instances, dtype=torch.float32)
    for most in (3, 100):
        offsets = torch.tensor(bags.offsets) if most == 3 else torch.tensor([0, len(instances)])
        network.zero_grad()
        network(instances, offsets).square().sum().backward()
        places = [p.grad.untyped_storage().data_ptr() for p in network.parameters() if p.grad is not None]
        assert len(set(places)) == len(places) > 0


def test_parameters_of_subclasses_of_subclasses() -> None:
    class Wide(DeepMIL):
        def __init__(me, width, **settings):
            super().__init__(**settings)
            me.width = width

        def build(self, n_features):
            raise NotImplementedError

    class Deep(Wide):
        _fixed = frozenset({"hidden"})

        def __init__(self, depth=2, lr=0.5, **settings):
            super().__init__(hidden=8, lr=lr, **settings)
            self.depth = depth

    class Deeper(Deep):
        def __init__(self, *args, dropout, **settings):
            super().__init__(*args, dropout=dropout, **settings)

    class Closed(Deep):
        def __init__(self, epochs=3):
            super().__init__(width=1, epochs=epochs)

    class Last(Closed):
        def __init__(self, hidden=5, **settings):
            super().__init__(**settings)
            self.hidden = hidden

    common = set(DeepMIL.__init__.__kwdefaults__)
    assert set(Wide._get_param_names()) == common | {"width"}
    assert set(Deep._get_param_names()) == set(Deeper._get_param_names()) == (common - {"hidden"}) | {"width", "depth"}
    assert Closed._get_param_names() == ["epochs"]
    assert Last._get_param_names() == ["epochs", "hidden"]
    made = [
        Wide(3),
        Wide(width=3, hidden=4),
        Deep(width=3),
        Deep(4, width=3, tol=0.5),
        Deeper(width=3, dropout=0.25),
        Closed(4),
        Last(6, epochs=2),
    ]
    for model in made:
        again = clone(model)
        assert again.get_params() == model.get_params()
        assert vars(again) == vars(model)
        assert repr(again) == repr(model)
    assert (made[3].lr, made[3].hidden, made[3].depth) == (0.5, 8, 4)
    assert inspect.signature(Deep).parameters["width"].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_subclass_of_a_wrapped_module_has_no_parameters_of_the_network() -> None:
    class Own(ModuleMIL):
        def __init__(self, style="flat", **settings):
            super().__init__(torch.nn.Linear, style, **settings)

        _fixed = frozenset({"module"})

    known = set(DeepMIL.__init__.__kwdefaults__) - {"hidden", "dropout"}
    assert set(ModuleMIL._get_param_names()) == known | {"module", "style"}
    assert set(Own._get_param_names()) == known | {"style"}
    model = clone(Own(lr=0.5))
    assert (model.lr, model.style, model.module) == (0.5, "flat", torch.nn.Linear)


@each
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_trains_on_a_gpu_as_on_the_cpu(name: str) -> None:
    bags = make_bags(200, seed=0)
    # models that are trained on a few instances of each bag drop no units
    still = {"dropout": 0.0} if "dropout" in mf.models.get(name)().get_params() else {}
    on_cpu, on_gpu = (small(name, device=device, **still).fit(bags) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(on_gpu.loss_curve_, on_cpu.loss_curve_, rtol=0.05)
