from .registry import DEFAULT_DEPTH as DEFAULT_DEPTH
from .registry import SEED as SEED
from .registry import AgentSpec as AgentSpec
from .registry import AgentSpecError as AgentSpecError
from .registry import make_agent as make_agent
from .registry import names as names
from .registry import option_names as option_names
from .registry import register as register
