"""`reversi bench gpu --cpu`: the benchmark itself, in small."""

import pytest

from benchmarks import gpu
from reversi_env.envs import TorchVectorEnv


@pytest.mark.slow
def test_the_benchmark_runs_without_a_gpu(monkeypatch, json_lines):
    monkeypatch.setattr(gpu, "pgx_rate", lambda device: "not measured here")
    share = gpu.environment_share
    monkeypatch.setattr(gpu, "environment_share", lambda device, batch: share(device, 16, steps=3))
    monkeypatch.setattr(gpu, "copy_bandwidth", lambda device: 1e10)
    monkeypatch.setattr(gpu, "_steps_of_about_a_second", lambda step, device: 20)
    [result] = json_lines("bench", "gpu", "--cpu", "--plies", 3000, "--batches", "64,128")
    assert result["equal"]
    assert len(result["compared"]) == 18
    assert set(result["plies_per_second"]) == {"64", "128"}
    assert min(result["plies_per_second"].values()) > 0
    assert result["bytes_per_ply"] == 281
    assert 0 < result["policy"]["share"] < 1
    assert len(result["states_compared"]) == 6
    assert min(result["states"].values()) > 0
    assert result["pgx_ratio"] is None
    [some] = json_lines("bench", "gpu", "--cpu", "--plies", 300, "--parts", "states")
    assert some["states_compared"]
    assert "compared" not in some


def test_a_difference_anywhere_changes_the_hash(monkeypatch):
    def hashed(**options):
        return gpu.trace_hash(TorchVectorEnv(8, device="cpu", size=4, **options), 12)

    assert hashed() == hashed()
    assert len({hashed(), hashed(variant="reversed"), hashed(opponent="random"), hashed(reward="discs")}) == 4
    step = TorchVectorEnv.random_step
    calls = []

    def forged(self):
        result = step(self)
        calls.append(1)
        if len(calls) == 5:
            result[4]["action_mask"][7, 16] ^= True
        return result

    honest = hashed()
    monkeypatch.setattr(TorchVectorEnv, "random_step", forged)
    assert hashed() != honest


def test_a_difference_of_pure_states_is_noticed(monkeypatch):
    monkeypatch.setattr(gpu, "GAMES", ((4, "reversed"),))
    (found,) = gpu.states_equal_to_environments("cpu", 4000)
    assert found == {"size": 4, "variant": "reversed", "plies": 4096, "differ": [], "equal": True}
    honest, calls = gpu.functional.reward, []

    def forged(state, kind):
        calls.append(1)
        return honest(state, kind) + (len(calls) == 14)

    monkeypatch.setattr(gpu.functional, "reward", forged)
    (found,) = gpu.states_equal_to_environments("cpu", 4000)
    assert not found["equal"]
    assert found["differ"] == ["reward"]
