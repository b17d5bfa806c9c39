"""Registers the environments' ids with Gymnasium and PettingZoo, whichever is imported first, they or this package.

Neither is imported for it, and the entry points are texts: nothing heavy is loaded before an environment is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

IDS = {"Reversi-v0": "normal", "ReversedReversi-v0": "reversed"}


def _with_gymnasium() -> None:
    """The single and vector environments, and those of tensors (Torch…)."""
    import gymnasium

    for name, variant in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="reversi_env.envs.single:ReversiEnv",
                vector_entry_point="reversi_env.envs.vector:ReversiVectorEnv",
                kwargs={"variant": variant},
            )
        if f"Torch{name}" not in gymnasium.registry:
            entry = "reversi_env.envs.torch_vector:TorchVectorEnv"
            gymnasium.register(f"Torch{name}", vector_entry_point=entry, kwargs={"variant": variant})


def _with_pettingzoo() -> None:
    """The AEC environment."""
    from pettingzoo.env_registry import registration

    for name, variant in IDS.items():
        if name not in registration.aec_registry:
            registration.register("aec", name, "reversi_env.envs.pettingzoo:env", kwargs={"variant": variant})


REGISTRIES: dict[str, Callable[[], None]] = {"gymnasium": _with_gymnasium, "pettingzoo": _with_pettingzoo}


def register_all() -> None:
    """Register with the libraries that are loaded, and with the others as soon as they are."""
    waiting = {name: register for name, register in REGISTRIES.items() if name not in sys.modules}
    for name, register in REGISTRIES.items():
        if name not in waiting:
            register()
    if waiting:
        sys.meta_path.insert(0, _Waiting(waiting))


class _Waiting(MetaPathFinder):
    """Notices the import of a library, and registers when it is done; who only asks whether there is one changes nothing."""

    def __init__(self, waiting: dict[str, Callable[[], None]]) -> None:
        self._waiting, self._asked = waiting, set[str]()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the others find, with a loader that registers after it has loaded."""
        if name not in self._waiting or name in self._asked:
            return None
        self._asked.add(name)  # the others are asked now
        try:
            spec = find_spec(name)
        finally:
            self._asked.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader, lambda: self._waiting.pop(name, lambda: None)())
        return spec


class _Registering(Loader):
    """Loads a module as its own loader does, and registers then."""

    def __init__(self, loader: Loader, register: Callable[[], None]) -> None:
        self._loader, self._register = loader, register

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, whose own loader is back in its place for whoever asks for it."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._register()
