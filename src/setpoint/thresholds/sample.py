"""The examples a threshold sees: scores and the weights of both classes in every slice.

Everything is ``[c, n]``: ``c`` outputs (one for a binary classifier) of ``n`` examples, in float64.
An example of weight zero is absent, which is also how a half-filled memory is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from setpoint.axes.cuts import Cuts
from setpoint.rates import Array, Where
from setpoint.thresholds.arrays import alike, array_of, library_of, tensor_of


@dataclass(frozen=True)
class Sample:
    """Scores ``[c, n]`` and, for each slice, the weights of positives and negatives ``[c, n, k]``.

    The columns come in pairs, positives then negatives, one pair for each slice. All are tensors,
    or all are arrays of numpy.
    """

    scores: Array
    columns: Array
    totals: Array = field(init=False)  # the weight of each column, [c, k]

    def __post_init__(self) -> None:
        totals = alike(array_of(self.columns).sum(1), self.columns)
        object.__setattr__(self, "totals", totals)

    def tensors(self) -> Sample:
        """The same examples as tensors."""
        return Sample(tensor_of(self.scores), tensor_of(self.columns))

    def cuts(self, slices: tuple[Where, ...]) -> Cuts:
        """The sorted scores with the counts at every cut; in numpy or torch."""
        xp, scores, columns = (library_of(self.scores), *map(array_of, (self.scores, self.columns)))
        masks = {
            where: (columns[..., 2 * i], columns[..., 2 * i + 1]) for i, where in enumerate(slices)
        }
        return Cuts.sort(xp, scores, masks)

    def joined(self, other: Sample) -> Sample:
        """Both samples; weights scaled so that their sum stays that of this one.

        Only a goal that counts heads (``alerts``) can tell the difference: ``k`` means ``k`` of a
        batch, however long the memory.
        """
        columns = torch.cat([self.columns, other.columns], 1)
        mine, all_ = (x[..., :2].sum((1, 2), keepdim=True) for x in (self.columns, columns))
        factor = torch.where(all_ > 0, mine / all_, 1.0)
        scores = torch.cat([self.scores.detach(), other.scores], 1)
        return Sample(scores, columns * torch.nan_to_num(factor))

    def standing_for(self, whole: Sample) -> Sample:
        """This sample with the class totals of ``whole``: its mean stands for the whole.

        Averaged over memory and batch instead, the gradient would shrink by the share of the batch.
        """
        mine, all_ = self.totals, whole.totals
        factor = torch.where(mine > 0, all_ / torch.where(mine > 0, mine, 1.0), 0.0)
        return Sample(self.scores, self.columns * factor[:, None])
