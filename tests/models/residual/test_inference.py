"""What is compiled or recorded for a GPU goes on plainly, and says so, where that cannot be."""

import pytest
import torch
from torch._dynamo.exc import TorchDynamoException

from models.bitboards import board_tensor
from models.residual import inference as compiling
from models.residual.inference import fused_network
from models.residual.net import ResidualNet
from reversi_env import Rules, batch


def test_a_failure_to_compile_or_record_is_told_once(monkeypatch):
    def refused(*_, **__):
        raise TorchDynamoException("no compiler\nhere")

    def doubled(numbers):
        return (numbers + numbers,)

    monkeypatch.setattr(torch, "compile", lambda function, **how: refused)
    monkeypatch.setattr(compiling, "_Graph", refused)
    for made, doing in ((compiling.TorchCompiled(doubled), "compile"), (compiling.CudaGraphed(doubled), "record")):
        with pytest.warns(RuntimeWarning, match=f"torch cannot {doing} doubled, .*: no compiler here") as told:
            assert [made(torch.tensor([2]))[0].item() for _ in range(2)] == [4, 4]
        assert len(told) == 1


def test_fused_blocks_say_what_the_network_says_and_plain_ones_where_there_is_no_cudnn(monkeypatch):
    def one_kernel(maps, weight, added, share, bias, *how):  # cuDNN's, of CUDA alone
        return torch.relu(torch.convolution(maps, weight, bias, *how[:3], False, [0, 0], how[3]) + share * added)

    torch.manual_seed(1)
    net = ResidualNet(6, channels=8, blocks=2).requires_grad_(False)
    for block in net.blocks:
        torch.nn.init.normal_(block.second.weight, std=0.2)
        torch.nn.init.normal_(block.second.bias)
    torch.nn.init.normal_(net.value.weight)
    boards = [board_tensor(side) for side in batch.random_positions(50, 12, Rules(6), seed=1)]
    expected = net(*boards)
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    with torch.library._scoped_library("aten", "IMPL") as here:
        here.impl("cudnn_convolution_add_relu", one_kernel, "CPU")
        torch.testing.assert_close(fused_network(net)(*boards), expected)
    answers = fused_network(net)
    with pytest.warns(RuntimeWarning, match="torch cannot fuse .*: Could not run") as told:
        found = [answers(*boards) for _ in range(2)]
    torch.testing.assert_close(found, [expected, expected])
    assert len(told) == 1
