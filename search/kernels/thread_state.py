"""`THREAD_STATE`: the record of a search thread: limits, tables, the current path and move lists."""

from typing import Any

import numpy as np

from search.kernels.accumulator import ACCUMULATORS

#: Maximum length of a move list; no known board, reachable or not, has more than 35 moves.
MAX_MOVES = 40
#: The fields of the move lists, one per level (`search.kernels.ordering`).
MOVE_LISTS: list[Any] = [
    ("flipped", np.uint64, (64, MAX_MOVES)),
    ("square", np.int64, (64, MAX_MOVES)),
    ("rank", np.int64, (64, MAX_MOVES)),
]

#: Numbers first, then arrays, the largest last: fields that are read at every node are close together.
THREAD_STATE = np.dtype(
    [
        # --- all searches
        ("playable", np.uint64),
        ("square_count", np.int64),
        ("sign", np.int64),
        ("nodes", np.int64),
        ("node_limit", np.int64),
        ("stop", np.int64),  # set by other threads, or by the search at the node limit: values are then invalid
        # --- to a depth: `search.kernels.midgame`
        ("table", np.int64),  # address of the words of the table of estimates; 0: none
        ("bucket_mask", np.int64),
        ("generation", np.int64),
        ("probcut_margin", np.float64),  # ProbCut: standard deviations of safety; 0: none
        ("last_move_rank", np.int64),  # rank of the move that leads to the next node, or NOT_RANKED (`static_value`)
        ("probcut_nesting", np.int64),  # nesting of ProbCut's shallow searches
        # --- to the end: `search.kernels.endgame`
        ("negamax", np.int64),  # address of the midgame search with the same evaluator, for ProbCut
        ("endgame_table", np.int64),  # address of the words of the table of exact and selective scores
        ("endgame_mask", np.int64),
        ("endgame_generation", np.int64),
        ("shallow_table", np.int64),  # address of the thread's own table of positions near the end; 0: none
        ("selectivity", np.int64),  # level of `search.engine.probcut.SELECTIVITIES`
        ("end_margin", np.float64),  # ProbCut to the end: standard deviations of safety; 0: none, the result is exact
        ("lower", np.int64),  # current bounds of the value
        ("upper", np.int64),
        ("rank_empties", np.int64),  # minimum empties at which the static evaluation counts in the ranks
        ("corner_reply", np.int64),  # extra weight of a reply in a corner
        ("corners", np.uint64),
        # --- threads that search together
        ("busy", np.int64),  # address of the ABDADA marks; 0: one thread
        ("root", np.int64),  # empties of the highest node on the path: the root, or in the midgame its children
        ("abandon", np.int64),  # level of the ancestor whose window the table decides; 0: none
        # --- the current path, by empties: positions, windows and depths
        ("path_own", np.uint64, (65,)),
        ("path_opp", np.uint64, (65,)),
        ("path_alpha", np.int64, (65,)),
        ("path_beta", np.int64, (65,)),
        ("path_depth", np.int64, (65,)),
        # --- the killer moves of the last ply (bits), by empties
        ("killer", np.uint64, (65,)),
        # --- ProbCut: deep value = slope * shallow value + shift, with a deviation, all in units
        ("probcut_depth", np.int64, (64,)),  # by depth: depth of the shallow search; 0: none
        ("probcut_slope", np.float64, (64,)),
        ("probcut_shift", np.float64, (64,)),
        ("end_depth", np.int64, (64,)),  # ProbCut in a search to the end, by empties: depth of the shallow search
        ("end_slope", np.float64, (64,)),
        ("end_shift", np.float64, (64,)),
        ("end_deviation", np.float64, (64,)),
        ("probcut_deviation", np.float32, (64, 64)),  # by depth and empties
        ACCUMULATORS,  # the evaluator's accumulators
        *MOVE_LISTS,
    ],
    align=True,
)

#: The record of a thread that may share a search with others; the code for a single thread has no checks for it, and is 2 % faster.
#: The new field comes first, because numba accepts a record that extends another one in its place.
SHARING_THREAD_STATE = np.dtype(
    [
        ("share_depth", np.int64),  # minimum depth at which positions are deferred that other threads search
        *((name, THREAD_STATE[name]) for name in THREAD_STATE.names or ()),
    ],
    align=True,
)
