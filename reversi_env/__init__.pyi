from .envs import OpponentPool as OpponentPool
from .envs import ReversiEnv as ReversiEnv
from .envs import ReversiVectorEnv as ReversiVectorEnv
from .envs import TorchVectorEnv as TorchVectorEnv
from .errors import ReversiError as ReversiError
from .notation import Game as Game
from .notation import read_ggf as read_ggf
from .notation import read_obf as read_obf
from .notation import read_transcript as read_transcript
from .notation import read_wthor as read_wthor
from .position import Position as Position
from .rules import BLACK as BLACK
from .rules import WHITE as WHITE
from .rules import Colour as Colour
from .rules import Rules as Rules

__version__: str
