"""The structure of the packages: imports without cycles, sizes of modules and folders, private names, facades and their stubs."""

import ast
import tomllib
from functools import cache
from importlib import import_module

import pytest

from tests.conftest import REPOSITORY
from tests.oracles.processes import output_of

PACKAGES = ("reversi_env", "search", "models", "train", "studies", "play", "benchmarks")
#: Names with an underscore that are public by their documentation: of named tuples, `os` and the interpreter.
PUBLIC = {"_replace", "_asdict", "_fields", "_exit", "_thread"}
MAX_LINES, MIN_LINES, MAX_MODULES = 450, 25, 13
#: Imports between folders that close a cycle; each imports one name inside a function.
CYCLIC_IMPORTS = {("reversi_env.gpu", "reversi_env.envs"), ("reversi_env.gpu", "reversi_env.functional")}


def files(*suffixes):
    return [path for name in PACKAGES for path in sorted((REPOSITORY / name).rglob("*")) if path.suffix in suffixes]


def name_of(path):
    return path.relative_to(REPOSITORY).as_posix()


@cache
def modules():
    """All nodes of every module's syntax tree, by its path."""
    return {name_of(path): list(ast.walk(ast.parse(path.read_text()))) for path in files(".py")}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def defined(nodes):
    """Private names that a module defines: functions, classes, variables, attributes and slots."""
    names = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.Constant(value=str(name)):
                names.add(name)
    return {name for name in names if is_private(name)}


def check_acyclic(imported):
    """Fail with the first cycle of a graph, a set of successors by node."""
    done = set()

    def follow(node, path):
        if node in path:
            pytest.fail(f"an import cycle: {' -> '.join([*path[path.index(node) :], node])}")
        if node not in done:
            for other in sorted(imported.get(node, ())):
                follow(other, [*path, node])
            done.add(node)

    for node in sorted(imported):
        follow(node, [])


@cache
def import_graph():
    grimp = pytest.importorskip("grimp", reason="grimp comes with import-linter, of the extra dev")
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def folder_of(module):
    return module if (REPOSITORY / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def test_modules_have_no_import_cycles():
    check_acyclic(import_graph())


def test_folders_have_no_import_cycles():
    """A folder and its subfolders are not compared: errors and rules are below them, facades and commands above."""
    imported = {}
    for module, others in import_graph().items():
        importer = folder_of(module)
        for folder in map(folder_of, others):
            nested = f"{folder}.".startswith(f"{importer}.") or f"{importer}.".startswith(f"{folder}.")
            if not nested and (importer, folder) not in CYCLIC_IMPORTS:
                imported.setdefault(importer, set()).add(folder)
    check_acyclic(imported)


def test_modules_are_neither_too_long_nor_too_short():
    lines = {name_of(path): len(path.read_text().splitlines()) for path in files(".py", ".js")}
    assert {name for name, count in lines.items() if count > MAX_LINES} == set()
    assert {name for name, count in lines.items() if count < MIN_LINES and not name.endswith("__init__.py")} == set()


def test_folders_have_few_modules():
    counts = {}
    for path in files(".py", ".js"):
        if path.name != "__init__.py":
            counts[name_of(path.parent)] = counts.get(name_of(path.parent), 0) + 1
    assert not {folder for folder, count in counts.items() if count > MAX_MODULES}


@pytest.mark.slow
def test_private_names_stay_in_their_module():
    private_names = {path: defined(nodes) for path, nodes in modules().items()}
    owners = {name: path for path, names in private_names.items() for name in names}
    wrong = []
    for path, nodes in modules().items():
        allowed = private_names[path] | PUBLIC
        for node in nodes:
            match node:
                case ast.ImportFrom(names=names) | ast.Import(names=names):
                    modules_and_names = [getattr(node, "module", None) or "", *(alias.name for alias in names)]
                    parts = {part for name in modules_and_names for part in name.split(".")} - PUBLIC
                    wrong += [(path, f"{node.lineno} imports {part}") for part in parts if is_private(part)]
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    continue  # perhaps of a base class
                case ast.Attribute(attr=name) if is_private(name) and name not in allowed:
                    wrong.append((path, f"{node.lineno} .{name}, of {owners.get(name, 'a library')}"))
    wrong = [f"{path}:{use}" for path, use in wrong if not path.startswith("reversi_env/compiler/")]
    assert not wrong, "\n".join(wrong)


def test_no_exported_name_equals_a_module_of_its_package():
    """Importing the module would replace the name."""
    wrong = []
    for path in (path for path in files(".py", ".pyi") if path.stem == "__init__"):
        package, folder = ".".join(path.parent.relative_to(REPOSITORY).parts), path.parent
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        names = {alias.asname or alias.name for node in imports if node.module != package for alias in node.names}
        wrong += [f"{path} {name}" for name in names if (folder / name).is_dir() or (folder / f"{name}.py").exists()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("stub", files(".pyi"), ids=name_of)
def test_a_facade_exports_the_names_of_its_stub(stub):
    package = ".".join(stub.parent.relative_to(REPOSITORY).parts)
    facade = import_module(package)
    imports = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    modules_of_names = {alias.name: f"{package}.{node.module}" for node in imports for alias in node.names}
    assert set(facade.__all__) - {"__version__"} == modules_of_names.keys() - {"__version__"}
    for name, module in modules_of_names.items():
        assert getattr(facade, name) is getattr(import_module(module), name)
    with pytest.raises(AttributeError):
        facade.nothing  # noqa: B018


@pytest.mark.slow
def test_facades_import_all_names_with_eager_import():
    pytest.importorskip("torch", reason="all names of the facades need torch, of the extra learn")
    script = "import sys, reversi_env, search, models; print('numba' in sys.modules)"
    assert [output_of(script, EAGER_IMPORT=value) for value in ("", "1")] == [["False"], ["True"]]


def test_importing_reversi_env_loads_no_heavy_library():
    script = """
import sys
from reversi_env import functional, rendering
heavy = {"torch", "stable_baselines3", "PIL", "pygame", "matplotlib", "search", "models", "train", "play"}
print(heavy & set(sys.modules))
functional.legal(functional.init(2))
print("torch" in sys.modules)
"""
    assert output_of(script) == ["set()", "False"]


def test_environments_are_registered_in_any_import_order():
    script = """
import sys
import reversi_env
import gymnasium
print("pettingzoo" in sys.modules, gymnasium.make("ReversedReversi-v0", size=4).unwrapped.rules.variant)
import reversi_env.envs.pettingzoo
from pettingzoo.env_registry import registration
print("Reversi-v0" in registration.aec_registry)
"""
    assert output_of(script) == ["False reversed", "True"]
    script = """
import pettingzoo, reversi_env
from pettingzoo.env_registry import registration
print("Reversi-v0" in registration.aec_registry)
"""
    assert output_of(script) == ["True"]


def test_the_wheel_has_all_packages_and_stubs_without_studies():
    setuptools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]
    installed = [
        path for path in files(".py", ".pyi") if path.relative_to(REPOSITORY).parts[0] not in ("studies", "benchmarks")
    ]
    packages = {".".join(path.parent.relative_to(REPOSITORY).parts) for path in installed if path.name == "__init__.py"}
    assert sorted(setuptools["packages"]) == sorted(packages)
    stubs = {".".join(path.parent.relative_to(REPOSITORY).parts) for path in installed if path.suffix == ".pyi"}
    assert {package for package, patterns in setuptools["package-data"].items() if "*.pyi" in patterns} == stubs
