"""The house keeps its shape: no import circles, no private names across modules, no guessing what an agent can do."""

import ast
import re
from functools import cache

import grimp
import pytest

from tests.conftest import REPOSITORY

PACKAGES = ("reversi_env", "search", "models", "train", "studies", "play", "benchmarks")
#: Names of libraries that are ours, too: of named tuples, and of numba.
OTHERS = {"_replace", "_asdict", "_engine", "_get_module_for_linking"}


@cache
def modules():
    """All nodes of every module's syntax tree, by its path: there are many, and to find them takes longest."""
    paths = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    return {str(path.relative_to(REPOSITORY)): list(ast.walk(ast.parse(path.read_text()))) for path in paths}


def private(name):
    return name.startswith("_") and not name.startswith("__")


def defined(nodes):
    """Private names that a module defines: functions, classes, variables, attributes and slots."""
    found = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str(name)):
                found.add(name)
    return {name for name in found if private(name)}


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    done = set()

    def follow(module, way):
        if module in way:
            pytest.fail(f"an import circle: {' -> '.join([*way[way.index(module) :], module])}")
        if module not in done:
            for other in sorted(imported[module]):
                follow(other, [*way, module])
            done.add(module)

    for module in sorted(imported):
        follow(module, [])


def test_private_names_stay_in_their_module():
    private_names = {path: defined(nodes) for path, nodes in modules().items()}
    ours = {name: path for path, found in private_names.items() for name in found}
    wrong = []
    for path, nodes in modules().items():
        known = private_names[path] | OTHERS
        for node in nodes:
            match node:
                case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] in PACKAGES:
                    wrong += [f"{path}:{node.lineno} {alias.name}" for alias in names if private(alias.name)]
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    continue  # perhaps of a base class
                case ast.Attribute(attr=name) if private(name) and name in ours and name not in known:
                    wrong.append(f"{path}:{node.lineno} .{name}, of {ours[name]}")
    assert not wrong, "\n".join(wrong)


def test_nobody_guesses_what_an_agent_or_evaluator_can_do():
    """They have base classes, with defaults."""
    guessed = re.compile(r"(agent|evaluator|player|opponent|judge)s?$")
    wrong = []
    for path, nodes in modules().items():
        if path == "reversi_env/envs/opponents.py":  # takes whatever people have: models of other libraries, functions
            continue
        for node in nodes:
            match node:
                case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[of, ast.Constant(), *_]):
                    if guessed.search(ast.unparse(of)):
                        wrong.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)


def test_no_name_of_a_package_is_that_of_a_module_in_it():
    """Whoever imports the module would put it in the name's place."""
    wrong = []
    for path, nodes in modules().items():
        folder = (REPOSITORY / path).parent
        if path.endswith("/__init__.py"):
            package = ".".join(folder.relative_to(REPOSITORY).parts)
            imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != package]
            names = {alias.asname or alias.name for node in imports for alias in node.names}
            wrong += [
                f"{path} {name}" for name in names if (folder / name).is_dir() or (folder / f"{name}.py").exists()
            ]
    assert not wrong, "\n".join(wrong)
