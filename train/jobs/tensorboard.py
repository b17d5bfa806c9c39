"""`TensorBoard`: metrics of a run in a folder for TensorBoard, if that is installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reversi_env.errors import is_installed


class TensorBoard:
    """Writes the numbers of a row of metrics into *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def __call__(self, step: int, metrics: Mapping[str, Any]) -> None:
        if not is_installed("tensorboard"):
            return
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # A killed process may have written later steps than its checkpoint has: TensorBoard hides them.
            self._writer = SummaryWriter(str(self._folder), purge_step=step)
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, step)
        self._writer.flush()
