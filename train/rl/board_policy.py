"""`PolicyNet` as the policy of MaskablePPO in stable-baselines3.

It needs the environment's ``dict`` observations, which contain the action masks.
"""

from typing import Any

from gymnasium import spaces

from models.bitboards import boards_of_planes
from models.residual.net import PolicyNet
from reversi_env.errors import TrainError, extra_libraries

with extra_libraries():
    from sb3_contrib.common.maskable.distributions import MaskableDistribution
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import Tensor

Observation = dict[str, Tensor]


class _NoFeatures(BaseFeaturesExtractor):
    """Returns the observation unchanged; stable-baselines3 expects an extractor."""

    def __init__(self, observation_space: spaces.Space) -> None:
        super().__init__(observation_space, 1)

    def forward(self, observations: Observation) -> Observation:
        return observations


class BoardPolicy(MaskableActorCriticPolicy):
    """The policy and value of MaskablePPO: one `PolicyNet`, ``net``. The masks come from the observations."""

    def __init__(self, *args: Any, architecture: dict[str, int] | None = None, **options: Any) -> None:
        self._shape: dict[str, Any] = {"architecture": architecture or {}}
        super().__init__(*args, **{**options, "features_extractor_class": _NoFeatures})

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | self._shape

    def _build(self, lr_schedule: Any) -> None:
        self.net = _net(self.observation_space, **self._shape)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, values and the actions' log probabilities."""
        distribution, values = self._run(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values.unsqueeze(1), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: Tensor, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values, log probabilities of the actions, and the policy's entropy."""
        distribution, values = self._run(obs)
        return values.unsqueeze(1), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, action_masks: Any = None) -> MaskableDistribution:
        return self._run(obs)[0]

    def predict_values(self, obs: Any) -> Tensor:
        return self._run(obs)[1].unsqueeze(1)

    def _run(self, obs: Observation) -> tuple[MaskableDistribution, Tensor]:
        logits, values = self.net.of_actions(*boards_of_planes(obs["observation"]).unbind(1))
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        distribution.apply_masking(obs["action_mask"] != 0)
        return distribution, values


def _net(space: spaces.Space, architecture: dict[str, int]) -> PolicyNet:
    if not isinstance(space, spaces.Dict) or set(space) != {"observation", "action_mask"}:
        raise TrainError(
            f"observations of {type(space).__name__}: expected those of an environment with observation='dict'"
        )
    shape = space["observation"].shape
    assert shape is not None
    return PolicyNet(int(shape[-1]), **architecture)
