"""Hypothesis strategies: games and positions reached by legal play, of every size and variant."""

from hypothesis import strategies as st

from reversi_env import Position, Rules

any_rules = st.builds(
    Rules,
    st.sampled_from([4, 6, 8]),
    st.sampled_from(["normal", "reversed"]),
    st.sampled_from(["standard", "parallel"]),
)


@st.composite
def game_positions(draw, rules=any_rules):
    """All positions of a game played at random, or of the beginning of one."""
    position = Position.initial(draw(rules))
    positions = [position]
    for choice in draw(st.lists(st.integers(0, 2**20), max_size=64)):
        actions = position.legal_actions()
        if not actions:
            break
        position = position.play(actions[choice % len(actions)])
        positions.append(position)
    return positions


def reachable_positions(rules=any_rules):
    """One position reached by legal play."""
    return game_positions(rules).map(lambda positions: positions[-1])
