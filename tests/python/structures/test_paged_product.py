"""Pages beside every score, normaliser and structure: what the same keys in rows give, forward and backward."""

import pytest
import torch
from cases import B, H, NORMALISERS, S, SCORES, STRUCTURES, operands

import fovea

TABLE = torch.tensor([[3, 9, 0, 12, 5, 1, 7], [2, 8, 13, 4, 11, 6, 10]])  # one key per page: as many columns as the masks have
LENGTHS = torch.tensor([S, S - 2])


def pools_of(*rows):
    found = []
    for row in rows:
        pool = torch.full((B * S, 1, H, row.shape[-1]), torch.nan, dtype=row.dtype)
        for item, length in enumerate(LENGTHS):
            pool[TABLE[item, :length], 0] = row.detach()[item, :, :length].transpose(0, 1)
        found.append(pool.requires_grad_())
    return found


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("score", SCORES)
def test_pages_are_rows(score, structure):
    query, *rows = operands(score)
    pools = pools_of(*rows)
    compared = 0
    for normaliser in NORMALISERS:
        choices = SCORES[score][2](), NORMALISERS[normaliser]()
        seen = STRUCTURES[structure]()
        try:
            expected = fovea.attend(query, *rows, *choices, seen, key_lengths=LENGTHS)
        except RuntimeError as refused:  # docs/refused.md: the same words in pages
            with pytest.raises(RuntimeError) as error:
                fovea.attend(query, *pools, *choices, fovea.Paged(TABLE, LENGTHS) & seen)
            assert str(error.value).splitlines()[0].split(";")[0] == str(refused).splitlines()[0].split(";")[0]
            continue
        out = fovea.attend(query, *pools, *choices, fovea.Paged(TABLE, LENGTHS) & seen)
        torch.testing.assert_close(out, expected, msg=lambda said: f"{normaliser}: {said}")
        ours, *grads = torch.autograd.grad(out.square().sum(), (query, *pools))
        theirs, *row_grads = torch.autograd.grad(expected.square().sum(), (query, *rows))
        torch.testing.assert_close(ours, theirs, msg=lambda said: f"{normaliser}: {said}")
        for pool, row in zip(grads, row_grads):
            for item, length in enumerate(LENGTHS):
                torch.testing.assert_close(pool[TABLE[item, :length], 0].transpose(0, 1), row[item, :, :length])
        compared += 1
    assert compared
