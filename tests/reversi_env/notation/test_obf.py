"""OBF problems: byte-exact round trips, all sizes, comments, and errors that name the line."""

from pathlib import Path

import pytest

from reversi_env import BLACK, WHITE, Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError
from reversi_env.notation import Problem, read_obf, read_obf_line, read_wthor, write_obf_line

FFO_SAMPLE = Path(__file__).parents[2] / "data" / "ffo-sample.obf"
# The scores are invented: the reader does not check them.
LINE_8X8 = "-" * 19 + "X" + "-" * 7 + "XX" + "-" * 6 + "XO" + "-" * 27 + " O; C3:+2; E3:-4; C5:+0;"
LINE_6X6 = "--------------OX----XO-------------- X; C2:+4; B3:-10; E4:+4; D5:-36;"
LINE_4X4 = "-----OX--XO----- X; B1:-8; A2:-8; D3:+16; C4:-8;"
MUST_PASS = "OX-------------- X; PS:-3;"


def written_back(path: Path) -> bytes:
    return "".join(f"{write_obf_line(problem)}\n" for problem in read_obf(path)).encode()


def test_ffo_sample_round_trips_byte_for_byte():
    assert written_back(FFO_SAMPLE) == FFO_SAMPLE.read_bytes()


def test_all_ffo_files_round_trip_byte_for_byte(external_data):
    for path in (external_data / "ffo").glob("*.obf"):
        assert written_back(path) == path.read_bytes(), path.name


def test_problem_has_position_and_scores_in_file_order():
    problem = next(read_obf(FFO_SAMPLE))
    assert (problem.position.turn, problem.position.empties) == (BLACK, 14)
    assert problem.scores[:3] == (("g8", 18), ("h1", 12), ("h7", 6))
    assert problem.best_score == 18
    assert read_obf_line(LINE_4X4).best_score == 16  # the highest, in any place
    assert read_obf_line("-----OX--XO----- X;").best_score is None
    turns = [read_obf_line(line).position.turn for line in (LINE_8X8, LINE_4X4, LINE_4X4.replace(" X", " *"))]
    assert turns == [WHITE, BLACK, BLACK]


@pytest.mark.parametrize(("line", "size"), [(LINE_4X4, 4), (LINE_6X6, 6), (LINE_8X8, 8), (MUST_PASS, 4)])
def test_board_length_sets_size_and_line_round_trips(line, size):
    problem = read_obf_line(line)
    assert problem.position.rules == Rules(size)
    assert write_obf_line(problem) == line
    assert read_obf_line(line, Rules(size, "reversed")).position.rules == Rules(size, "reversed")
    with pytest.raises(PositionError, match=str(size**2)):
        read_obf_line(line, Rules(12 - size if size != 6 else 4))


@pytest.mark.parametrize(
    "line",
    [
        *("-----ox--xo----- x;b1:-8;a2:-8;d3:16;c4:-8", "-----OX--XO-----X; b1 : -8 ; a2:-8; d3:+16; c4:-8;"),
        "---- -OX- -XO- ---- X; B1:-8; A2:-8; D3:+16; C4:-8;\n",
        ".....OX..XO..... B; B1:-08; A2:-8; D3:+16; C4:-8;",
    ],
)
def test_spelling_variants_give_the_same_problem(line):
    assert read_obf_line(line) == read_obf_line(LINE_4X4)


def test_comment_lines_are_skipped_and_comments_kept(tmp_path):
    lines = ["% test file", "", "   ", f"{LINE_4X4} % the start", LINE_6X6]
    path = tmp_path / "commented.obf"
    path.write_text("\r\n".join(lines), newline="")
    from_file, from_lines = list(read_obf(path)), list(read_obf(lines))
    assert from_file == from_lines
    assert [problem.comment for problem in from_file] == ["the start", ""]
    assert write_obf_line(from_file[0]) == lines[3]


def test_file_encodings_latin_1_utf_16_and_bom(tmp_path):
    path = tmp_path / "latin.obf"
    path.write_bytes(f"{LINE_4X4} % départ".encode("latin-1"))
    assert next(read_obf(str(path))).comment == "départ"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes(f"{LINE_4X4} % départ".encode(encoding))
        assert next(read_obf(path)) == read_obf_line(f"{LINE_4X4} % départ")


START4 = "-----OX--XO-----"
WRONG_FIELDS = ["E5:+2", ":+2", "B1:-8; B1:-6", "B1:+17", "B1", "B1:+", "B1:1.5", "B1:" + "9" * 5000, "; B1:-8"]
BAD_LINES = {
    IllegalMoveError: [f"{START4} X; A1:+2;", f"{START4} X; PS:+2;", f"{'-' * 16} X; A1:+2;"],
    NotationError: [
        *(f"{START4} X; {field};" for field in WRONG_FIELDS),
        *(None, "", "% nothing", f"{START4} Z; B1:-8;", f"{START4} X; % one\ntwo"),
    ],
    PositionError: ["-----OX--XO---- X; B1:-8;", "-----OX--XO?---- X;"],
}


@pytest.mark.parametrize(("error", "line"), [(error, line) for error in BAD_LINES for line in BAD_LINES[error]])
def test_invalid_line_is_rejected(error, line):
    with pytest.raises(error, match="^OBF line "):
        read_obf_line(line)


def test_error_in_file_names_the_line():
    problems = read_obf([LINE_4X4, "% comment", "garbage"])
    assert next(problems) == read_obf_line(LINE_4X4)
    with pytest.raises(NotationError, match="line 3: .*garbage"):
        next(problems)


SOURCES = {read_obf: [5, None, [5], b"bytes", "nul\0character"], read_wthor: [5, None, ["f5"], "nul\0character"]}


@pytest.mark.parametrize(("reader", "source"), [(reader, source) for reader in SOURCES for source in SOURCES[reader]])
def test_invalid_source_is_rejected(reader, source):
    with pytest.raises(NotationError):
        list(reader(source))


def test_problem_constructor_validates_scores():
    start = Position.initial()
    assert Problem(start, [("D3", 0)]).scores == (("d3", 0),)
    for scores in ([("a1", 0)], [("d3", 65)], [("d3", 0), ("d3", 0)]):
        with pytest.raises(ReversiError):
            Problem(start, scores)
