"""Slow, plain twins of the sampling kernels."""

from reversi_env import Position

WORD = (1 << 64) - 1
GAMMA = 0x9E37_79B9_7F4A_7C15


def mix(word):
    word = ((word ^ word >> 30) * 0xBF58_476D_1CE4_E5B9) & WORD
    word = ((word ^ word >> 27) * 0x94D0_49BB_1331_11EB) & WORD
    return word ^ word >> 31


class Words:
    """SplitMix64."""

    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (self.state + GAMMA) & WORD
        return mix(self.state)

    def below(self, bound):
        return (self.next() >> 32) * bound >> 32

    def fraction(self):
        return (self.next() >> 11) / 2**53


def value_after(position, action, evaluator):
    """For the side that plays *action*."""
    after = position.play(action)
    return -(after.score() if after.is_over() else evaluator.static_value(after))


def greedy_action(position, evaluator, words):
    best, chosen, ties = None, None, 0
    for action in position.legal_actions():
        value = value_after(position, action, evaluator)
        if best is None or value > best:
            best, chosen, ties = value, action, 1
        elif value == best:
            ties += 1
            if words.below(ties) == 0:
                chosen = action
    return chosen


def play_game(options, evaluator, game):
    """(position or None, random moves at its beginning, moves in all) of game number *game*."""
    words = Words(mix((mix((options.seed + GAMMA) & WORD) + game) & WORD))
    empties = options.empties[0] + words.below(options.strata)
    position = Position.initial(options.rules)
    prefix = words.below(position.empties - empties)
    noise = {position.turn: 1.0, position.turn.other: 1.0}
    if words.fraction() >= options.random_share:
        noise = {side: options.noise[words.below(len(options.noise))] for side in noise}
    moves = 0
    while position.empties > empties:
        if position.is_over():
            return None, prefix, moves
        if position.must_pass():
            position = position.play("pass")
            continue
        is_random = words.fraction() < noise[position.turn]
        if moves < prefix or is_random:
            actions = position.legal_actions()
            position = position.play(actions[words.below(len(actions))])
        else:
            position = position.play(greedy_action(position, evaluator, words))
        moves += 1
    return (None if position.is_over() else position), prefix, moves


def canonical_rows(own, opp):
    """The canonical form of every position as a pair of ints, by the public face of the symmetries."""
    from reversi_env import batch

    return list(zip(*(board.tolist() for board in batch.canonical(own, opp)[:2]), strict=True))
