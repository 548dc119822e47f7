"""Any torch module as an estimator of bag labels: it is made, called and trained as it asks for."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import nn

from milfast.models.deep import base, making
from milfast.models.deep.base import DeepMIL
from milfast.models.deep.calling import BagModule
from milfast.models.deep.detection import adapted
from milfast.models.signatures import MODULE_STYLES, title_of
from milfast.training import loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["ModuleMIL"]

#: Training bags on which a trained module is looked at.
LOOKED_AT = 16
#: Parameters of `DeepMIL` that say what its network is.
ALIEN = frozenset({"hidden", "dropout"})


class ModuleMIL(DeepMIL):
    """Estimator around a torch module of one's own, which need not know milfast.

    The module is trained on binary cross-entropy with logits, by the loop and with the settings of all deep models
    here; a method ``compute_loss`` of its own is not used. It may return one logit for each bag, as (n_bags,) or
    (n_bags, 1); two logits, of which the second minus the first is taken; or probabilities, one or two, which are made
    logits, so that the loss is the cross-entropy of the probabilities; in training mode it may return the one and in
    evaluation mode the other. Of a tuple the first value counts, of a dict
    "logits".

    Parameters
    ----------
    module : class, callable or torch.nn.Module
        A class or function that makes a module, called anew for every fit with the number of features as
        ``in_shape=(n,)``, as ``n_features=n`` or by another usual name, as its only argument, or without any. A module
        that is made already is copied, and its parameters are drawn anew for every fit by ``reset_parameters`` of its
        parts, which is the initialisation of its layers and not one of its own; frozen parts stay as they are.
    style : {"flat", "padded", "single"}, optional
        How it takes bags: "flat" as ``module(instances, offsets)``; "padded" as ``module(x, mask)`` with `x` of shape
        (n_bags, longest bag, n_features), filled up with zeros, and a mask that is true where there is an instance, or
        as ``module(x)`` when it takes no mask, with bags of one size at a time; "single" as ``module(bag)``. Without it
        the style is found from the names of the arguments of ``forward`` and by trying, before any training.
    **settings
        Parameters of `DeepMIL`, but for `hidden` and `dropout`, which are up to the module. Bags are padded in batches
        of `batch_size` when they are scored as well. `random_state` also decides what the module draws from the
        generators of numpy and `random`, which are left as they were found.

    Attributes
    ----------
    module_ : BagModule
        The trained module behind one call on flat bags; ``module_.inner`` is that of the user, ``str(module_)`` says
        how it is called.
    findings_ : tuple of str
        What scores were seen to depend on beside the bag, those of small bags before training or those of training
        bags after it: "padding", or "unstable" for chance or the bags that are scored along. Results of checks carry
        them as flags.
    mean_, scale_, classes_, n_features_in_, loss_curve_, auc_curve_
        As in `DeepMIL`.

    Examples
    --------
    >>> import milfast as mf
    >>> from torch import nn
    >>> class Largest(nn.Module):
    ...     def __init__(self, n_features):
    ...         super().__init__()
    ...         self.score = nn.Linear(n_features, 1)
    ...     def forward(self, x, mask):
    ...         return self.score(x).squeeze(-1).masked_fill(~mask, -9).amax(dim=1)
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = ModuleMIL(Largest, epochs=200, lr=0.05, random_state=0).fit(bags)
    >>> model.predict(bags), model.findings_
    (array([0, 1]), ())
    >>> str(model.module_)
    'padded: module(x_padded, mask=mask), returns logits'
    """

    _fixed: ClassVar[frozenset[str]] = ALIEN

    def __init__(self, module: Any, style: str | None = None, **settings: Any) -> None:
        if alien := ALIEN & settings.keys():
            raise TypeError(f"ModuleMIL takes no {' and no '.join(sorted(alien))}: that is up to the module")
        super().__init__(**settings)
        self.module = module
        self.style = style

    @property
    def name(self) -> str:
        """What results call it: the name of the module's class, or of the function that makes it."""
        return title_of(self.module)

    @property
    def claims(self) -> str | None:
        """The assumption that the module's class claims to respect, where it says so."""
        return getattr(getattr(self.module, "func", self.module), "claims", None)

    @property
    def written_in(self) -> Any:
        """What was written by the user: its file tells a study when the model has changed."""
        source = getattr(self.module, "func", self.module)
        return type(source) if isinstance(source, nn.Module) else source

    def __sklearn_clone__(self) -> Self:
        module = self.module
        settings: dict[str, Any] = {
            name: making.copied(value) if value is module and isinstance(value, nn.Module) else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**settings)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if isinstance(self.module, nn.Module):
            making.detach(self.module, memo)
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    def build(self, n_features: int) -> BagModule:
        """Make the untrained module, and find out how it takes bags.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        BagModule

        Raises
        ------
        TypeError
            When it cannot be made, or gives no logit for each of two small bags; the message says what was tried.
        ValueError
            When `style` is unknown, or it returns NaN for a small bag.
        Exception
            Whatever the module raises, with a note.
        """
        if self.style not in (None, *MODULE_STYLES):
            raise ValueError(f"style must be {', '.join(map(repr, MODULE_STYLES))} or None; got {self.style!r}")
        if not (isinstance(self.module, nn.Module) or callable(self.module)):
            raise TypeError(
                "module must be a torch module, or a class or function that makes one; got "
                f"{type(self.module).__name__}"
            )
        with making.host_seeded(int(torch.randint(2**31, ()))):
            made = making.make(self.module, n_features)
            return adapted(made, n_features, style=self.style, batch_size=int(self.batch_size), name=self.name)

    def probe(self, n_features: int) -> str:
        """Make the module and try it on small bags, without training.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        str
            How it is called.

        Raises
        ------
        TypeError, ValueError, Exception
            As `build`.
        """
        self._check_parameters()
        with loop.seeded(0):
            return str(self.build(n_features))

    def fit(self, bags: Bags, y: None = None) -> Self:
        """Train on labelled bags.

        Parameters
        ----------
        bags : Bags
            With labels of both classes.
        y : None
            Labels are read from `bags`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, FloatingPointError
            As `DeepMIL.fit` and `build`.
        """
        super().fit(bags, y)
        few = bags[np.arange(min(LOOKED_AT, bags.n_bags))]
        assert isinstance(self.module_, BagModule)
        seen = self.module_.findings(self._prepare(few), torch.tensor(few.offsets))
        self.findings_ = tuple(sorted({*self.module_.seen, *seen}))
        return self

    def decision_function(self, bags: Bags) -> NDArray[np.float64]:
        """Bag logits; those that depend on chance are the same at each call with the same bags.

        Parameters
        ----------
        bags : Bags
            With the number of features trained on.

        Returns
        -------
        ndarray of float64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `DeepMIL.decision_function`.
        """
        check_is_fitted(self, "module_")
        assert isinstance(self.module_, BagModule)
        with loop.seeded(self.module_.seed, base._usable_device(self.device)):
            return super().decision_function(bags)
