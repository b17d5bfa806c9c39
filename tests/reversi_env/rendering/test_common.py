"""What all renderers share: the check of the last move, and imports that wait until they are needed."""

from __future__ import annotations

import pytest

from reversi_env import Position, Rules
from reversi_env.errors import IllegalMoveError
from reversi_env.rendering import render_ansi, render_rgb, render_svg
from tests.oracles.processes import output_of


@pytest.mark.parametrize("render", [render_ansi, render_svg, render_rgb])
@pytest.mark.parametrize("last_move", [-1, 17, 64, True, 3.0, "a1"])
def test_last_move_off_the_board_is_refused(render, last_move):
    if render is render_rgb:
        pytest.importorskip("PIL")
    with pytest.raises(IllegalMoveError, match="expected a number from 0 to 16"):
        render(Position.initial(Rules(4)), last_move)


@pytest.mark.parametrize("module", ["reversi_env", "reversi_env.rendering"])
def test_import_leaves_optional_packages_alone(module):
    code = f"import sys, {module}; print(sorted({{'PIL', 'pygame'}} & set(sys.modules)))"
    assert output_of(code) == ["[]"]
