"""Fitting a linear pattern network on the CPU: the gradient of a step, and AdamW over the weights that the data can reach.

All sums are in the order of the positions, so that the result is the same on any number of threads.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel

#: Adam's decay rates and epsilon, as in torch.
BETA_1, BETA_2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
_ONE_MINUS_BETA_1, _ONE_MINUS_BETA_2, _ONE = np.float32(0.1), np.float32(0.001), np.float32(1.0)

#: Parameters of the network and of the loss.
NET = np.dtype(
    [
        ("span", np.int64),  # empties per phase
        ("lowest", np.int64),  # phase of the first weights
        ("highest", np.int64),
        ("row", np.int64),  # weights per phase
        ("huber_delta", np.float32),
    ],
    align=True,
)


@kernel
def huber_gradient(error, huber_delta):
    """Return the gradient of the Huber loss: the error, clipped to ± *huber_delta*."""
    return min(max(error, -huber_delta), huber_delta)


@kernel
def value_of(features, offset, weights, constant):
    """Return the network's value of a position: its constant and a weight per feature."""
    value = constant
    for j in range(features.size):
        value += weights[offset + features[j]]
    return value


@kernel
def phase_at(empties, shift, net):
    """Return the phase of a position among those of *net*, with a *shift* of its empties."""
    phase = np.int64(np.floor((empties + shift) / net.span))
    return min(max(phase, net.lowest), net.highest) - net.lowest


@kernel
def values_of(nets, empties, features, weights, constants, values):
    """Write the network's value in discs of every position."""
    net = nets[0]
    for i in range(empties.size):
        offset = phase_at(empties[i], np.float32(0.0), net) * net.row
        values[i] = value_of(features[i], offset, weights, constants[empties[i]])


@kernel
def add_gradient(nets, batch, shifts, empties, scores, features, weights, constants, gradient, constant_gradient):
    """Add the gradient of the mean loss over the positions *batch*; return the sum of their absolute errors in discs.

    ``shifts[k]`` is added to the empties of position ``batch[k]`` to find its phase.
    """
    net = nets[0]
    share = np.float32(1.0) / np.float32(batch.size)
    total = 0.0
    for k in range(batch.size):
        i = batch[k]
        offset = phase_at(empties[i], shifts[k], net) * net.row
        error = value_of(features[i], offset, weights, constants[empties[i]]) - scores[i]
        total += abs(error)
        value_gradient = huber_gradient(error, net.huber_delta) * share
        for j in range(features.shape[1]):
            gradient[offset + features[i, j]] += value_gradient
        constant_gradient[empties[i]] += value_gradient
    return total


@kernel
def adam(weights, gradient, first_moment, second_moment, rate, decay, step):
    """Take a step of AdamW on some weights, and set the gradient to zero."""
    kept = _ONE - np.float32(rate * decay)
    size = np.float32(rate / (1.0 - 0.9**step))
    root = np.float32(1.0 / np.sqrt(1.0 - 0.999**step))
    for i in range(weights.size):
        value_gradient = gradient[i]
        gradient[i] = np.float32(0.0)
        first_moment[i] = BETA_1 * first_moment[i] + _ONE_MINUS_BETA_1 * value_gradient
        second_moment[i] = BETA_2 * second_moment[i] + _ONE_MINUS_BETA_2 * value_gradient * value_gradient
        weights[i] = weights[i] * kept - size * first_moment[i] / (np.sqrt(second_moment[i]) * root + EPSILON)


@kernel
def clip_in_place(numbers, most):
    for i in range(numbers.size):
        numbers[i] = min(max(numbers[i], -most), most)


@kernel
def quantise(numbers, one, most, rounded):
    """Quantise and dequantise: write each number rounded to a multiple of 1/*one*, clipped to ± *most*/*one*."""
    for i in range(numbers.size):
        rounded[i] = min(max(np.rint(numbers[i] * one), -most), most) / one
