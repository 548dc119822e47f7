"""Many small networks of one shape as one: their parameters side by side, one computation for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from milfast.models.deep.making import copied
from milfast.training.bag_scores import InstanceNetwork

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ModuleStack", "Stack", "TableStack", "stack_of"]

#: Columns of a stack's values beyond those of the networks: a and b of the loss.
EXTRA = 2


class Stack:
    """Networks whose parameters are rows of one matrix.

    Attributes
    ----------
    values, gradient : Tensor, shape (n_models, n_parameters + 2)
        The last two columns are a and b of each model's loss.
    """

    values: Tensor
    gradient: Tensor
    networks: list[InstanceNetwork]

    def forward(
        self, instances: Tensor, active: Sequence[int], there: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Scores of each model's own instances, and what its attention says of them.

        Parameters
        ----------
        instances : Tensor, shape (n_models, n, n_features + 1)
            The last feature is 1.
        active : sequence of int
            Models that matter; a stack may leave out others.
        there : Tensor of bool, shape (n_models, n), optional
            Instances that were drawn; the others fill up and must not move anything.

        Returns
        -------
        scores, says : Tensor, shape (n_models, n), or None for `says`
        """
        raise NotImplementedError

    def backward(self, scores: Tensor, says: Tensor | None) -> None:
        """Work out `gradient` from the gradients by what the last `forward` returned.

        Parameters
        ----------
        scores, says : Tensor, shape (n_models, n), or None
        """
        raise NotImplementedError

    def prepare(self, factor: Tensor | None, shift: Tensor | None) -> None:
        """Get ready to score instances that all models share.

        Parameters
        ----------
        factor, shift : Tensor, shape (n_models, n_features + 1), or None
            Model m sees ``instances * factor[m] + shift[m]``.
        """
        raise NotImplementedError

    def of_all(self, instances: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores of the same instances by each model, with the parameters of the last `prepare`.

        Parameters
        ----------
        instances : Tensor, shape (n, n_features + 1)

        Returns
        -------
        scores, says : Tensor, shape (n, n_models), or None for `says`
        """
        raise NotImplementedError

    def network(self, model: int) -> InstanceNetwork:
        """One of the networks, with parameters of its own.

        Parameters
        ----------
        model : int

        Returns
        -------
        InstanceNetwork
        """
        raise NotImplementedError

    def buffers(self) -> list[dict[str, Tensor]]:
        """What networks hold beside parameters, such as running means."""
        return [dict(network.named_buffers()) for network in self.networks]


class TableStack(Stack):
    """Networks ``h = tanh(W x + c)`` with a score and attention on h, whose gradient is written out.

    A step then takes a dozen operations for any number of models, where automatic differentiation takes that many for
    each.

    Parameters
    ----------
    networks : list of InstanceNetwork
        Without a module of one's own, of one shape.
    device : torch.device
    """

    def __init__(self, networks: list[InstanceNetwork], device: torch.device) -> None:
        self.networks = networks
        first = networks[0]
        hidden, n_features = _linear(first).weight.shape
        self.n_features, self.hidden = n_features, hidden
        shapes = [(n_features + 1, hidden), (hidden, 1), (1, 1)]
        if first.attention is not None:
            shapes += [(hidden, hidden), (1, hidden), (hidden, 1), (1, 1)]
        rows = [torch.cat([part.reshape(-1) for part in _parts(network)]) for network in networks]
        self.values = torch.stack([torch.cat((row, row.new_zeros(EXTRA))) for row in rows]).to(device)
        self.gradient = torch.zeros_like(self.values)
        self.parts, self.gradients = (self._views(whole, shapes) for whole in (self.values, self.gradient))
        self.attends = first.attention is not None

    @staticmethod
    def _views(whole: Tensor, shapes: list[tuple[int, int]]) -> list[Tensor]:
        pieces = torch.split(whole, [*(m * n for m, n in shapes), EXTRA], dim=1)
        return [piece.view(-1, *shape) for piece, shape in zip(pieces, shapes, strict=False)]

    def forward(
        self, instances: Tensor, active: Sequence[int], there: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Scores and attention; what `backward` needs is kept."""
        first, head, bias = self.parts[:3]
        hidden = _tanh_(torch.bmm(instances, first))
        scores = torch.baddbmm(bias, hidden, head).squeeze(2)
        said = says = None
        if self.attends:
            value, shift, score, constant = self.parts[3:]
            said = _tanh_(torch.baddbmm(shift, hidden, value))
            says = torch.baddbmm(constant, said, score).squeeze(2)
        self._kept = instances, hidden, said
        return scores, says

    def backward(self, scores: Tensor, says: Tensor | None) -> None:
        """The chain rule through both layers."""
        instances, hidden, said = self._kept
        _, head, _ = self.parts[:3]
        by_score = scores.unsqueeze(2)
        torch.bmm(hidden.mT, by_score, out=self.gradients[1])
        torch.sum(by_score, dim=1, keepdim=True, out=self.gradients[2])
        by_hidden = by_score * head.mT
        if says is not None:
            assert said is not None
            value, _, score, _ = self.parts[3:]
            by_says = says.unsqueeze(2)
            torch.bmm(said.mT, by_says, out=self.gradients[5])
            torch.sum(by_says, dim=1, keepdim=True, out=self.gradients[6])
            by_said = torch.ops.aten.tanh_backward(by_says * score.mT, said)
            torch.bmm(hidden.mT, by_said, out=self.gradients[3])
            torch.sum(by_said, dim=1, keepdim=True, out=self.gradients[4])
            by_hidden.baddbmm_(by_said, value.mT)
        torch.bmm(instances.mT, torch.ops.aten.tanh_backward(by_hidden, hidden), out=self.gradients[0])

    def prepare(self, factor: Tensor | None, shift: Tensor | None) -> None:
        """Put what each model does to features, and all factors of 2, into the layers.

        With ``tanh(x) = 2 sigmoid(2 x) - 1`` no more is left of the hyperbolic tangents than sigmoids, which take a
        quarter of the time.
        """
        first, head, bias = self.parts[:3]
        doubled = 2 * first
        if factor is not None and shift is not None:
            constant = torch.bmm(shift.unsqueeze(1), doubled)
            doubled.mul_(factor.unsqueeze(2))[:, -1:].add_(constant)
        self._ready = [doubled, 2 * head, bias - head.sum(1, keepdim=True)]
        if self.attends:
            value, shifts, score, constants = self.parts[3:]
            self._ready += [4 * value, 2 * (shifts - value.sum(1, keepdim=True))]
            self._ready += [2 * score, constants - score.sum(1, keepdim=True)]

    def of_all(self, instances: Tensor) -> tuple[Tensor, Tensor | None]:
        """One model after the other: what it needs then stays in the processor's cache."""
        scores = instances.new_empty((len(self.values), len(instances)))
        says = torch.empty_like(scores) if self.attends else None
        for model in range(len(self.values)):
            first, head, bias, *others = (part[model] for part in self._ready)
            hidden = torch.mm(instances, first).sigmoid_()
            torch.addmv(bias[0], hidden, head[:, 0], out=scores[model])
            if says is not None:
                value, shift, score, constant = others
                said = torch.addmm(shift, hidden, value).sigmoid_()
                torch.addmv(constant[0], said, score[:, 0], out=says[model])
        return scores.T, None if says is None else says.T

    def network(self, model: int) -> InstanceNetwork:
        """A network with copies of a row's values."""
        network = copied(self.networks[model])
        assert isinstance(network, InstanceNetwork)
        values = [part[model].detach().cpu() for part in self.parts]
        with torch.no_grad():
            first, score = _linear(network), network.score
            assert score is not None
            first.weight.copy_(values[0][:-1].T)
            first.bias.copy_(values[0][-1])
            score.weight.copy_(values[1].T)
            score.bias.copy_(values[2][0])
            if network.attention is not None:
                network.attention.value.weight.copy_(values[3].T)
                network.attention.value.bias.copy_(values[4][0])
                network.attention.score.weight.copy_(values[5].T)
                network.attention.score.bias.copy_(values[6][0])
        return network


def _tanh_(values: Tensor) -> Tensor:
    """In place, by way of the faster sigmoid; see `milfast.models.deep.layers.tanh`."""
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)


def _linear(network: InstanceNetwork) -> nn.Linear:
    assert isinstance(network.features, nn.Sequential)
    first = network.features[0]
    assert isinstance(first, nn.Linear)
    return first


def _parts(network: InstanceNetwork) -> list[Tensor]:
    first, score = _linear(network), network.score
    assert score is not None
    parts = [first.weight.T, first.bias, score.weight, score.bias]
    if network.attention is not None:
        value, says = network.attention.value, network.attention.score
        parts += [value.weight.T, value.bias, says.weight, says.bias]
    return [part.detach() for part in parts]


class ModuleStack(Stack):
    """Networks of any kind, one after the other, whose parameters are views of one matrix.

    Parameters
    ----------
    networks : list of InstanceNetwork
    device : torch.device

    Raises
    ------
    ValueError
        When a network has nothing to train, or parameters of another dtype than float32.
    """

    def __init__(self, networks: list[InstanceNetwork], device: torch.device) -> None:
        self.networks = [network.to(device).train() for network in networks]
        trained = [[p for p in network.parameters() if p.requires_grad] for network in networks]
        if not trained[0]:
            raise ValueError("module has no parameter that can be trained")
        if any(p.dtype != torch.float32 for p in trained[0]):
            raise ValueError("parameters of module must be float32")
        sizes = [p.numel() for p in trained[0]]
        self.values = torch.zeros((len(networks), sum(sizes) + EXTRA), device=device)
        self.gradient = torch.zeros_like(self.values)
        self.places: list[list[tuple[nn.Parameter, Tensor, Tensor]]] = []
        for row, grad, parameters in zip(self.values, self.gradient, trained, strict=True):
            views = (torch.split(whole[: sum(sizes)], sizes) for whole in (row, grad))
            self.places.append([])
            for parameter, value, gradient in zip(parameters, *views, strict=True):
                value.copy_(parameter.detach().reshape(-1))
                parameter.data = value.view_as(parameter)
                parameter.grad = gradient.view_as(parameter)
                self.places[-1].append((parameter, parameter.data, parameter.grad))

    def forward(
        self, instances: Tensor, active: Sequence[int], there: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Scores and attention of the models and instances that matter; zeros of others.

        A network may look at its instances together, as batch normalisation does, so that it sees none that fill up.
        """
        self._outputs: dict[int, tuple[Tensor, Tensor | None]] = {}
        shape = instances.shape[:2]
        self._there = instances.new_ones(shape, dtype=torch.bool) if there is None else there
        scores, says = instances.new_zeros(shape), instances.new_zeros(shape)
        attends = self.networks[0].attention is not None
        for model in active:
            with torch.enable_grad():
                found = self.networks[model](instances[model, self._there[model], :-1])
            self._outputs[model] = found
            scores[model, self._there[model]] = found[0].detach()
            if found[1] is not None:
                says[model, self._there[model]] = found[1].detach()
        return scores, says if attends else None

    def backward(self, scores: Tensor, says: Tensor | None) -> None:
        """Automatic differentiation of each network."""
        self.gradient.zero_()
        for model, (made, said) in self._outputs.items():
            kept = self._there[model]
            if said is None or says is None:
                torch.autograd.backward([made], [scores[model, kept]])
            else:
                torch.autograd.backward([made, said], [scores[model, kept], says[model, kept]])
            for parameter, value, gradient in self.places[model]:
                # a network may have put either elsewhere
                if parameter.grad is not gradient:
                    gradient.zero_() if parameter.grad is None else gradient.copy_(parameter.grad)
                    parameter.grad = gradient
                if parameter.data_ptr() != value.data_ptr():
                    value.copy_(parameter.detach())
                    parameter.data = value
        self._outputs = {}

    def prepare(self, factor: Tensor | None, shift: Tensor | None) -> None:
        """Keep what each model does to features."""
        self._seen = factor, shift

    def of_all(self, instances: Tensor) -> tuple[Tensor, Tensor | None]:
        """One network after the other, in evaluation mode."""
        scores, says = [], []
        factor, shift = self._seen
        with torch.no_grad():
            for model, network in enumerate(self.networks):
                given = instances
                if factor is not None and shift is not None:
                    given = instances * factor[model] + shift[model]
                modes = [(part, part.training) for part in network.modules()]
                network.eval()
                made, said = network(given[:, :-1])
                for part, training in modes:
                    part.training = training
                scores.append(made)
                if said is not None:
                    says.append(said)
        return torch.stack(scores, dim=1), torch.stack(says, dim=1) if says else None

    def network(self, model: int) -> InstanceNetwork:
        """A copy, in evaluation mode, on the CPU."""
        network = copied(self.networks[model])
        for parameter in network.parameters():
            parameter.data = parameter.detach().clone()
            parameter.grad = None
        assert isinstance(network, InstanceNetwork)
        return network.cpu().eval()


def stack_of(networks: list[InstanceNetwork], device: torch.device) -> Stack:
    """Networks of one shape as a stack: the fast one where they are those of tables.

    Parameters
    ----------
    networks : list of InstanceNetwork
    device : torch.device

    Returns
    -------
    Stack

    Examples
    --------
    >>> import torch
    >>> stack_of([InstanceNetwork(4), InstanceNetwork(4)], torch.device("cpu")).values.shape
    torch.Size([2, 27])
    """
    tabular = all(network.tabular for network in networks)
    return TableStack(networks, device) if tabular else ModuleStack(networks, device)
