"""The examples of the documentation run: Python unchanged, commands with shorter options, examples in docstrings.

The blocks of a page run one after the other, in one namespace and one folder. A block after a comment
``<!-- test: … -->`` does not run here; the comment says what runs it instead.
"""

import doctest
import importlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted((DOCS / "guide").glob("*.md"))]
#: Layers whose docstrings pytest does not collect by itself.
LAYERS = ("models", "train", "studies", "play", "benchmarks")
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))
#: The two commands between markers in the README are run by .ci/run, word for word.
BLOCK = re.compile(r"^(<!-- (?:test: .*|main:begin|tests:begin) -->\n)?```(\w+)[^\n]*\n(.*?)^```", re.M | re.S)
#: Options that shorten each command; the last of repeated options counts. Commands without a short form only print
#: their help here, and have their own tests.
SHORT_OPTIONS = {
    "analyse": "--depth 2",
    "bench": "--help",
    "exam": "--positions 4",
    "experiment": "--games 100",
    "label": "--count 60 --empties 4-5",
    "match": "--games 2",
    "measure depth": "--positions 2 --seconds 0.01 --depth 2 --games 4",
    "measure regret": "--positions 2 --empties 2-4",
    "probe": "--games 64 --test-games 32 --steps 2 --cases 10",
    "train gpt": "--steps 2 --batch-size 8 --eval-games 16",
    "train ppo": "--total-timesteps 1024 --num-envs 32 --num-steps 16 --n-epochs 2 --eval-every 512 --snapshot-every 512 "
    "--eval-games 4 --channels 4 --blocks 1 --no-regret",
    "train alphazero": "--generations 1 --games 4 --steps 2 --final-steps 2 --channels 4 --blocks 1 --simulations 4 "
    "--eval-games 2 --no-exam",
    "tournament": "--games 2 --depth 1",
    "train fit": "--epochs 1",
    "tune": "--generations 1 --population 4 --games 4",
}
#: Waits until a server in the background answers.
WAIT_FOR_PORT = "until (echo > /dev/tcp/127.0.0.1/{}) 2> /dev/null; do kill -0 $!; sleep 0.2; done"
BIN = Path(sys.executable).parent


def blocks(page):
    """Return (language, text) of the blocks to run."""
    matches = BLOCK.findall(page.read_text("utf-8"))
    return [(language, text) for comment, language, text in matches if language in ("python", "bash") and not comment]


def lines_of(page):
    """Return the lines of the page's commands."""
    return [line for language, text in blocks(page) if language == "bash" for line in text.splitlines() if line.strip()]


def rl_guide():
    """Return the lines of the guide docs/guide/rl.md, which tests/train/rl/test_guide.py runs."""
    text = (DOCS / "guide" / "rl.md").read_text()
    text = text.partition("<!-- guide:begin -->")[2].partition("<!-- guide:end -->")[0]
    return [line for line in text.splitlines() if line and not line.startswith("```")]


def commands(page):
    """Return the lines that run here: without lines that also occur in the RL guide or, for the README, in any guide."""
    elsewhere = rl_guide() + [line for other in PAGES[1:] for line in lines_of(other) if page == PAGES[0]]
    return [line for line in lines_of(page) if line not in elsewhere]


def shortened(line):
    """Return a command line with shortened run time."""
    words = shlex.split(line, comments=True)
    if words[:1] != ["reversi"]:
        return line
    command = line.partition(" #")[0].rstrip().removesuffix("&")
    name = next((key for key in (" ".join(words[1:3]), words[1]) if key in SHORT_OPTIONS), "")
    short = f"{command} {SHORT_OPTIONS.get(name, '')}"
    return f"{short} & {WAIT_FOR_PORT.format(words[words.index('--port') + 1])}" if words[-1] == "&" else short


def as_script(page):
    """Return the page's Python blocks as one program, without doctest examples."""
    parts = [text for language, text in blocks(page) if language == "python"]
    return "\n".join(part for part in parts if ">>>" not in part)


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of a clone that examples use."""
    for name in ("studies", "constraints.txt"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    return tmp_path


def environment():
    paths = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY), "MPLBACKEND": "agg"}
    return os.environ | paths


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if as_script(page)], ids=lambda page: page.stem)
def test_python_blocks_of_a_page_run(page, folder):
    script = folder / "page.py"
    script.write_text(as_script(page))
    done = subprocess.run([sys.executable, script], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_of_a_page_run(page, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = str(taken.getsockname()[1])  # the port of the guide may be in use
    script = "set -euo pipefail\n" + "\n".join(map(shortened, commands(page))).replace("8455", free)
    with (folder / "output").open("w+") as output:  # a server in the background would keep a pipe open
        running = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            status = running.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)  # including background processes
        output.seek(0)
        assert status == 0, f"{script}\n{output.read()}"


@pytest.mark.slow
@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda source: source.stem)
def test_a_notebook_runs(source, tmp_path, monkeypatch):
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    nbclient.NotebookClient(
        jupytext.read(source), kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()


def modules_with_examples():
    """Return the names of modules with examples in their docstrings."""
    paths = [path for layer in LAYERS for path in sorted((REPOSITORY / layer).rglob("*.py"))]
    names = [path.relative_to(REPOSITORY).with_suffix("") for path in paths if ">>> " in path.read_text("utf-8")]
    slow = [pytest.mark.slow]  # they compile kernels that no other test needs
    return [pytest.param(".".join(name.parts), marks=slow if name.parts[0] == "train" else []) for name in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert (result.failed, result.attempted > 0) == (0, True)


def test_documented_commands_exist():
    from play.cli.app import COMMANDS

    groups = {name.partition(" ")[0] for name in COMMANDS}
    unknown = []
    for page in [REPOSITORY / "README.md", *DOCS.rglob("*.md")]:
        text = "" if DOCS / "lab" in page.parents else page.read_text("utf-8")
        for line in re.findall(r"(?:^|`)(reversi [a-z][^`\n]*)", text, re.M):
            words = line.split()
            name = " ".join(words[1:3])
            if not {words[1], name} & COMMANDS.keys() and not (words[1] in groups and len(words) == 2):
                unknown.append(f"{page.name}: {line}")
    assert not unknown


def anchors(page):
    """Return the anchors of a page's headings as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S), re.M)
    plain = [unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode() for heading in headings]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain}


def test_links_have_targets():
    broken = []
    for page in [*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")]:
        for link in re.findall(r'(?:\]\(|src=")([^)" ]+)', page.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
                broken.append(f"{page.name}: {link}")
    assert not broken


def test_documented_files_exist():
    packages = "reversi_env|search|models|train|play|studies|benchmarks|tests"
    missing = []
    for page in [*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")]:
        names = re.findall(rf"`((?:{packages})/[\w./-]+)`", page.read_text("utf-8"))
        missing += [f"{page.name}: {name}" for name in names if not (REPOSITORY / name).exists()]
    assert not missing


def test_examples_of_the_networks_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(
        r"```python\n(.*?)```", (DOCS / "reference" / "networks.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len(examples) == 3
    for example in examples:
        exec(compile(example.replace("games=10", "games=2"), "docs/reference/networks.md", "exec"), {})
    assert [path.name[:11] for path in Path().glob("*.safetensors")] == ["6x6-normal-"]
