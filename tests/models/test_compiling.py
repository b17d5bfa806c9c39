"""What is compiled or recorded for a GPU goes on plainly, and says so, where that cannot be."""

import pytest
import torch
from torch._dynamo.exc import TorchDynamoException

from models import compiling


def test_a_failure_to_compile_or_record_is_told_once(monkeypatch):
    def refused(*_, **__):
        raise TorchDynamoException("no compiler\nhere")

    def doubled(numbers):
        return (numbers + numbers,)

    monkeypatch.setattr(torch, "compile", lambda function, **how: refused)
    monkeypatch.setattr(compiling, "_Graph", refused)
    for made, doing in ((compiling.Compiled(doubled), "compile"), (compiling.Recorded(doubled), "record")):
        with pytest.warns(RuntimeWarning, match=f"torch cannot {doing} doubled, .*: no compiler here") as told:
            assert [made(torch.tensor([2]))[0].item() for _ in range(2)] == [4, 4]
        assert len(told) == 1
