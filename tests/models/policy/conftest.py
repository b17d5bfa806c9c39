"""Small networks."""

from tests.oracles.policies import no_litter, policy_file, positions, tiny_net

__all__ = ["no_litter", "policy_file", "positions", "tiny_net"]
