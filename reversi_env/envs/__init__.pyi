from .opponents import OpponentPool as OpponentPool
from .settings import SettingsError as SettingsError
from .single import ReversiEnv as ReversiEnv
from .torch_vector import TorchVectorEnv as TorchVectorEnv
from .vector import ReversiVectorEnv as ReversiVectorEnv
