from .base import Agent as Agent
from .registry import AgentSpecError as AgentSpecError
from .registry import names as names
from .registry import option_names as option_names
from .searching import DEFAULT_DEPTH as DEFAULT_DEPTH
from .spec import AgentSpec as AgentSpec
from .spec import make_agent as make_agent
