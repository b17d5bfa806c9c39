"""Fitting a deep pattern network on the CPU: the forward pass, and the gradient of a step.

Rows are ``(phases, row, WIDTH)`` as one long array, heads ``(phases, HEAD)`` (`models.kernels.deep` has their layout). Loops over
the numbers of a row and over the units of a head have constant lengths, so that they are vectorised.
"""

import numpy as np

from models.kernels.deep import QUANTISED_MAX, QUANTISED_ONE, SHAPE
from reversi_env.compiler.kernel import kernel
from train.kernels.fit_linear import huber_gradient

#: Constants, for loops of constant length.
WIDTH, HIDDEN, INPUTS = SHAPE.width, SHAPE.units, SHAPE.inputs
FIRST, BIAS, SECOND, CONSTANT = SHAPE.first, SHAPE.bias, SHAPE.second, SHAPE.constant
_ZERO, _MOST = np.float32(0.0), np.float32(QUANTISED_MAX / QUANTISED_ONE)


@kernel
def forward(features, offset, rows, head, sums, inputs, units):
    """Return the value of a position in discs; write the sums, the inputs of the head and the outputs of its units.

    *offset* is the index of the phase's first row.
    """
    for k in range(WIDTH):
        sums[k] = _ZERO
    for j in range(features.size):
        at = (offset + features[j]) * WIDTH
        for k in range(WIDTH):
            sums[k] += rows[at + k]
    value = head[CONSTANT]
    for k in range(WIDTH):
        value += head[k] * sums[k]
        inputs[k] = min(max(sums[k], _ZERO), _MOST)
        inputs[WIDTH + k] = min(max(-sums[k], _ZERO), _MOST)
    for u in range(HIDDEN):
        units[u] = head[BIAS + u]
    for k in range(INPUTS):
        for u in range(HIDDEN):
            units[u] += inputs[k] * head[FIRST + k * HIDDEN + u]
    for u in range(HIDDEN):
        units[u] = max(units[u], _ZERO)
        value += units[u] * head[SECOND + u]
    return value


@kernel
def deep_values(features, phases, row, rows, heads, values):
    """Write the network's value in discs of every position; *row* is the number of rows of a phase."""
    sums, inputs, units = np.empty(WIDTH, np.float32), np.empty(INPUTS, np.float32), np.empty(HIDDEN, np.float32)
    for i in range(values.size):
        phase = phases[i]
        values[i] = forward(features[i], phase * row, rows, heads[phase], sums, inputs, units)


@kernel
def transposed(heads):
    """Return the heads' first layers with a row per unit, for the backward pass."""
    transposed_heads = np.empty((heads.shape[0], HIDDEN * INPUTS), np.float32)
    for phase in range(heads.shape[0]):
        for k in range(INPUTS):
            for u in range(HIDDEN):
                transposed_heads[phase, u * INPUTS + k] = heads[phase, FIRST + k * HIDDEN + u]
    return transposed_heads


@kernel
def add_deep_gradient(
    batch,
    phases,
    features,
    scores,
    row,
    huber_delta,
    share,
    rows,
    heads,
    transposed_heads,
    row_gradients,
    head_gradients,
):
    """Add *share* times the gradients of the positions *batch*; return the sum of their absolute errors in discs.

    ``phases[i]`` is the phase of position ``batch[i]``.
    """
    sums, inputs, units = np.empty(WIDTH, np.float32), np.empty(INPUTS, np.float32), np.empty(HIDDEN, np.float32)
    by_sum, by_input, by_unit = np.empty_like(sums), np.empty_like(inputs), np.empty_like(units)
    total = 0.0
    for i in range(batch.size):
        position, phase = batch[i], phases[i]
        head, gradients, back = heads[phase], head_gradients[phase], transposed_heads[phase]
        error = forward(features[position], phase * row, rows, head, sums, inputs, units) - scores[position]
        total += abs(error)
        value_gradient = huber_gradient(error, huber_delta) * share
        gradients[CONSTANT] += value_gradient
        for u in range(HIDDEN):
            gradients[SECOND + u] += value_gradient * units[u]
            by_unit[u] = value_gradient * head[SECOND + u] if units[u] > _ZERO else _ZERO
            gradients[BIAS + u] += by_unit[u]
        for k in range(INPUTS):
            by_input[k] = _ZERO
            for u in range(HIDDEN):
                gradients[FIRST + k * HIDDEN + u] += inputs[k] * by_unit[u]
        for u in range(HIDDEN):
            for k in range(INPUTS):
                by_input[k] += by_unit[u] * back[u * INPUTS + k]
        for k in range(WIDTH):
            gradients[k] += value_gradient * sums[k]
            by_sum[k] = value_gradient * head[k]
            if _ZERO <= sums[k] <= _MOST:
                by_sum[k] += by_input[k]
            if -_MOST <= sums[k] <= _ZERO:  # both conditions hold at 0, as in torch; every fit begins there
                by_sum[k] -= by_input[WIDTH + k]
        for j in range(features.shape[1]):
            at = (phase * row + features[position, j]) * WIDTH
            for k in range(WIDTH):
                row_gradients[at + k] += by_sum[k]
    return total
