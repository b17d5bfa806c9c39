"""Fitting a linear pattern network on the CPU: the gradient of a step, and AdamW over the weights that the data can reach.

A batch consists of trees of positions; a single position is a tree of one node. The nodes of tree *t* are those from ``first[t]``
to ``first[t + 1] - 1``, parents before their children; ``parent`` is -1 at the root. All sums are in the order of the nodes, so
that the result is the same on any number of threads.
"""

from __future__ import annotations

import numpy as np

from reversi_env.compiler.kernel import kernel

#: Adam's decay rates and epsilon, as in torch.
BETA_1, BETA_2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
_ONE_MINUS_BETA_1, _ONE_MINUS_BETA_2, _ONE = np.float32(0.1), np.float32(0.001), np.float32(1.0)

#: A node of a tree.
NODE = np.dtype(
    [
        ("parent", np.int64),  # index of the parent, -1 at a root
        ("score", np.float32),  # discs for the side to move
        ("weight", np.float32),  # of its error in the loss
        ("empties", np.uint8),
        ("finished", np.bool_),
    ],
    align=True,
)
#: Parameters of the network and of the loss.
NET = np.dtype(
    [
        ("span", np.int64),  # empties per phase
        ("lowest", np.int64),  # phase of the first weights
        ("highest", np.int64),
        ("row", np.int64),  # weights per phase
        ("most_nodes", np.int64),  # maximum of a tree
        ("huber_delta", np.float32),
        ("consistency", np.float32),
    ],
    align=True,
)


@kernel
def huber_gradient(error, huber_delta):
    """Return the gradient of the Huber loss: the error, clipped to ± *huber_delta*."""
    return min(max(error, -huber_delta), huber_delta)


@kernel
def node_value(features, offset, weights, constant):
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
def values_of(nets, nodes, features, weights, constants, values):
    """Write the network's value in discs of every node."""
    net = nets[0]
    for i in range(nodes.size):
        empties = nodes[i].empties
        offset = phase_at(empties, np.float32(0.0), net) * net.row
        values[i] = node_value(features[i], offset, weights, constants[empties])


@kernel
def tree_gradients(nodes, start, values, huber_delta, consistency, best, gradients):
    """Write the gradient of the loss by the value of every node of a tree; *start* is the index of its root.

    Each node's error has its weight, and the distance of each inner node from its best child the weight *consistency*. Finished
    games have their score as value, and no gradient.
    """
    for k in range(nodes.size):
        node = nodes[k]
        best[k] = -1
        if node.finished:
            values[k], gradients[k] = node.score, np.float32(0.0)
        else:
            gradients[k] = node.weight * huber_gradient(values[k] - node.score, huber_delta)
    if nodes.size == 1 or consistency == 0.0:
        return
    for k in range(1, nodes.size):
        above = nodes[k].parent - start
        if best[above] < 0 or values[k] < values[best[above]]:  # a child's value is for the other side: lowest is best
            best[above] = k
    for k in range(nodes.size):
        child = best[k]
        if child >= 0:
            value_gradient = consistency * huber_gradient(values[k] + values[child], huber_delta)
            gradients[k] += value_gradient
            if not nodes[child].finished:
                gradients[child] += value_gradient


@kernel
def add_gradient(nets, batch, shifts, first, nodes, features, weights, constants, gradient, constant_gradient):
    """Add the gradient of the mean loss over the trees *batch*; return the sum of the absolute errors at their roots, in discs.

    ``shifts[k]`` is added to the empties of all nodes of tree ``batch[k]`` to find their phase.
    """
    net = nets[0]
    values, gradients = np.zeros(net.most_nodes, np.float32), np.zeros(net.most_nodes, np.float32)
    best = np.zeros(net.most_nodes, np.int64)
    share = np.float32(1.0) / np.float32(batch.size)
    total = 0.0
    for k in range(batch.size):
        start, end = first[batch[k]], first[batch[k] + 1]
        for i in range(start, end):
            node = nodes[i]
            offset = phase_at(node.empties, shifts[k], net) * net.row
            values[i - start] = node_value(features[i], offset, weights, constants[node.empties])
        tree_gradients(nodes[start:end], start, values, net.huber_delta, net.consistency, best, gradients)
        total += abs(values[0] - nodes[start].score)
        for i in range(start, end):
            value_gradient = gradients[i - start] * share
            offset = phase_at(nodes[i].empties, shifts[k], net) * net.row
            for j in range(features.shape[1]):
                gradient[offset + features[i, j]] += value_gradient
            constant_gradient[nodes[i].empties] += value_gradient
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
