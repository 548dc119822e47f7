"""An epoch of attention-based MIL over ragged bags, from the bags in memory to the weights."""

from __future__ import annotations

import pytest

import milfast as mf

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from milfast.models.deep.abmil import AttentionNetwork  # noqa: E402
from milfast.training import loop  # noqa: E402

N_BAGS = 10_000
SETTINGS = {"lr": 5e-4, "weight_decay": 1e-4}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bags() -> mf.Bags:
    return mf.sample_bags("threshold-poison", N_BAGS, random_state=0)


@pytest.fixture
def flat(bags: mf.Bags) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(map(torch.tensor, (bags.instances, bags.offsets, bags.labels)))


def ours(n_features: int) -> nn.Module:
    """The network of torchmil's ABMIL: attention on the features as they are."""
    network = AttentionNetwork(n_features, n_features, 0.0)
    network.embed = nn.Identity()
    return network


class Memory(torch.utils.data.Dataset):
    """Bags as torchmil's data sets hand them over."""

    def __init__(self, bags: mf.Bags) -> None:
        self.bags = [torch.tensor(bag) for bag in bags]
        self.labels = torch.tensor(bags.labels, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self.bags)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"X": self.bags[index], "Y": self.labels[index]}


@pytest.mark.parametrize("batch_size", [32, 512])
def test_abmil_epoch_beside_torchmil(race, bags, flat, batch_size) -> None:
    pytest.importorskip("torchmil")
    from torchmil.data import collate_fn
    from torchmil.models import ABMIL
    from torchmil.utils import Trainer

    network, theirs = ours(bags.n_features), ABMIL(in_shape=(bags.n_features,), att_dim=128)
    counts = [sum(p.numel() for p in module.parameters()) for module in (network, theirs)]
    assert counts[0] == counts[1] + 1  # the bias of the attention, which a softmax does not see
    loader = torch.utils.data.DataLoader(Memory(bags), batch_size=batch_size, shuffle=True, collate_fn=collate_fn)
    adam = torch.optim.Adam(theirs.parameters(), **SETTINGS)
    trainer = Trainer(theirs, adam, device="cpu", disable_pbar=True, verbose=False)

    def by_the_trainer() -> None:
        trainer._shared_loop(loader, mode="train")  # an epoch without the one over the validation bags

    race(
        f"abmil_epoch_1e4_batch_{batch_size}",
        lambda: loop.fit(
            network, *flat, epochs=1, batch_size=batch_size, optimizer="adam", clip_value=None, **SETTINGS
        ),
        "torchmil",
        by_the_trainer,
        rounds=3,
    )


def test_abmil_epoch_beside_padding(race, bags, flat) -> None:
    """Bags padded to the longest in each batch, in a plain loop: what one writes without a library."""
    network, theirs = ours(bags.n_features), ours(bags.n_features)
    parts = [torch.tensor(bag) for bag in bags]
    labels = flat[2].float()
    adam = torch.optim.Adam(theirs.parameters(), **SETTINGS)

    def padded() -> None:
        for chosen in torch.split(torch.randperm(N_BAGS), 32):
            rows = nn.utils.rnn.pad_sequence([parts[i] for i in chosen], batch_first=True)
            sizes = torch.tensor([len(parts[i]) for i in chosen])
            beyond = torch.arange(rows.shape[1]) >= sizes[:, None]
            weights = theirs.attention(rows).masked_fill(beyond[:, :, None], -torch.inf).softmax(dim=1)
            logits = theirs.head((weights * rows).sum(dim=1)).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[chosen])
            adam.zero_grad()
            loss.backward()
            adam.step()

    race(
        "abmil_epoch_1e4_padded",
        lambda: loop.fit(network, *flat, epochs=1, batch_size=32, optimizer="adam", clip_value=None, **SETTINGS),
        "padded loop",
        padded,
        rounds=3,
    )
