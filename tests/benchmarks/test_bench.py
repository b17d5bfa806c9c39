"""`reversi bench`: small runs give plausible results, and the JSON has the keys that scripts read."""

from importlib.util import find_spec

import pytest

from benchmarks import env, search, versus
from reversi_env.notation.obf import read_obf_line
from tests.conftest import REPOSITORY
from train.jobs import provenance

PEERS = {"pgx": "pgx", "openspiel": "pyspiel", "envpool": "envpool"}  # name to module
PEER_KEYS = {f"{peer}_{what}" for peer in PEERS for what in ("plies_per_second", "ratio")}
KEYS = PEER_KEYS | {f"{name}_plies_per_second" for name in ("single", "aec", "vector")}
KEYS |= {"cpu", "versions", "agent_steps_per_second", "vector_plies_per_second_all_cores", "vector_thread_speedup"}


@pytest.fixture
def few_plies(monkeypatch):
    """Measure the environments for a few plies only."""
    single, aec, vector = env.single_rate, env.aec_rate, env.vector_rates
    monkeypatch.setattr(env, "single_rate", lambda opponent, plies, repeats: single(opponent, 300, 1))
    monkeypatch.setattr(env, "aec_rate", lambda plies, repeats: aec(300, 1))
    monkeypatch.setattr(env, "vector_rates", lambda steps, repeats: vector(1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("installed", [True, False])
def test_env_benchmark_json_has_all_keys(few_plies, installed, monkeypatch, json_lines):
    rates = {"pgx": 200_000.0, "openspiel": 50_000.0, "envpool": 20_000.0}
    if installed:
        monkeypatch.setattr(env, "peer_rates", lambda: rates)
    monkeypatch.setattr(env.peers, "find_spec", lambda name: None)
    [result] = json_lines("bench", "env")
    assert set(result) == KEYS
    assert result["cpu"] == provenance.cpu_name()
    ratio = result["vector_plies_per_second"] / rates["pgx"]
    assert result["pgx_ratio"] == (pytest.approx(ratio) if installed else None)
    assert {key for key in KEYS if result[key] is None} == (set() if installed else PEER_KEYS)


@pytest.mark.slow
def test_installed_peer_libraries_are_measured():
    rates = env.peer_rates()
    for peer, module in PEERS.items():
        assert (rates[peer] is None) == (find_spec(module) is None)
        assert rates[peer] is None or rates[peer] > 0


@pytest.fixture
def gpu():
    pytest.importorskip("torch", reason="this needs torch, of the extra learn")
    from benchmarks import gpu

    return gpu


@pytest.mark.slow
def test_gpu_benchmark_runs_on_the_cpu(gpu, monkeypatch, json_lines):
    monkeypatch.setattr(gpu, "pgx_rate", lambda device: "not measured")
    play = gpu.policy_play
    monkeypatch.setattr(gpu, "policy_play", lambda device, batch: play(device, 16, steps=3))
    monkeypatch.setattr(gpu, "copy_bandwidth", lambda device: 1e10)
    monkeypatch.setattr(gpu, "_steps_of_about_a_second", lambda step, device: 20)
    [result] = json_lines("bench", "gpu", "--cpu", "--plies", 3000, "--batches", "64,128")
    assert result["equal"]
    assert (len(result["compared"]), len(result["states_compared"])) == (18, 6)
    assert set(result["plies_per_second"]) == {"64", "128"}
    assert result["bytes_per_ply"] == 281
    assert 0 < result["policy"]["share"] < 1
    assert result["pgx_ratio"] is None
    [states_alone] = json_lines("bench", "gpu", "--cpu", "--plies", 300, "--parts", "states")
    assert "states_compared" in states_alone
    assert "compared" not in states_alone


@pytest.mark.slow
def test_difference_from_the_cpu_environment_is_detected(gpu, monkeypatch):
    from reversi_env.envs import TorchVectorEnv

    monkeypatch.setattr(gpu, "GAMES", ((4, "reversed"),))
    assert [result["equal"] for result in gpu.equal_to_cpu("cpu", 3000)] == [True] * 3
    step, calls = TorchVectorEnv.random_step, []

    def forged(self):
        result = step(self)
        calls.append(1)
        if len(calls) == 5:
            result[4]["action_mask"][7, 16] ^= True
        return result

    monkeypatch.setattr(TorchVectorEnv, "random_step", forged)
    first, *others = gpu.equal_to_cpu("cpu", 3000)
    assert (first["opponent"], first["equal"], first["differ"]) == (None, False, ["action_mask"])
    assert all(result["equal"] for result in others)


@pytest.mark.slow
def test_search_benchmark_compares_two_checkouts(monkeypatch, json_lines):
    position = {"size": 4, "variant": "normal", "boards": [0x0000001008000000, 0x0000000810000000]}
    requests = [position | {"evaluator": "discs", "depth": 3}, position | {"evaluator": None, "depth": None}]
    monkeypatch.setattr(versus, "subjects", lambda: {"both": requests})
    [result] = json_lines("bench", "search", "--against", REPOSITORY, "--rounds", 2)
    assert result["both"]["same_values"]
    assert (result["both"]["nodes_ratio"], result["both"]["nodes"] > 100) == (1.0, True)


@pytest.mark.slow
def test_search_benchmark_solves_long_endgames(monkeypatch, json_lines):
    problems = [read_obf_line("XO-" + 61 * "X" + " X; C1:+64;")]
    monkeypatch.setattr(search, "ffo_problems", lambda: problems)
    monkeypatch.setattr(search, "long_problems", lambda: problems)
    [result] = json_lines("bench", "search", "--long")
    [solved] = result["long_endgames"]
    assert (solved["problem"], solved["score"], solved["correct"]) == (1, 64, True)
    [compared] = json_lines("bench", "search", "--long", "--against", REPOSITORY, "--rounds", 1)
    assert (compared["long endgame 1"]["nodes_ratio"], compared["long endgame 1"]["same_values"]) == (1.0, True)


@pytest.fixture
def server():
    pytest.importorskip("msgspec", reason="this needs msgspec, of the extra web")
    from benchmarks import server

    return server


@pytest.mark.slow
def test_server_load_plays_and_times_whole_games(server, api):
    result = server.load(api.url, 3, "greedy", 0.0)
    assert result["errors"] == 0
    assert result["moves"] > 3 * 20
    assert 0 < result["answer_median_ms"] <= result["answer_p99_ms"] <= result["answer_max_ms"]


def test_exceeded_latency_limits_are_listed(server):
    slow = {"agents": {"random": {"answer_median_ms": 7.0, "answer_p99_ms": 151.0}}}
    calm = {"agents": {"random": {"answer_median_ms": 3.0, "answer_p99_ms": 20.0}}}
    assert [each.split()[1] for each in server.exceeded(slow, calm)] == ["median", "p99"]
    assert server.exceeded(calm, calm) == []


@pytest.mark.slow
@pytest.mark.long
def test_attack_from_one_address_does_not_stop_other_games(server):
    """Every kind of attack reaches the server. ``bench server --hostile`` measures how much it slows other games."""
    signs = {"limits": "network:time=5 moves", "gets": "GET /api/health 200", "reviews": "review 320 deep 400"}
    signs |= {"create": "resign 200", "uploads": "upload 429", "messages": "messages"}
    assert signs.keys() == {*server.KINDS}
    with server.running_server("--workers", "2", "--proxy", "127.0.0.1") as (url, pid):
        for kind, sign in signs.items():
            result = server.load_under_attack(url, 2, 0.1 if kind == "limits" else 0.02, kind)
            assert result["errors"] == 0
            assert result["attack"][sign] > 0, result["attack"]
            assert not [outcome for outcome in result["attack"] if outcome.split()[-1].startswith("5")]
        assert (server.memory_mib(pid) or 0) < 300


@pytest.mark.slow
def test_token_benchmark_reports_rates(gpu, monkeypatch, json_lines):
    monkeypatch.setattr(gpu, "TOKEN_BATCHES", {"cpu": 20, "cuda": 20})
    [result] = json_lines("bench", "tokens")
    assert result["one_core_tokens_per_second"] > 0 < result["one_core_board_legal_tokens_per_second"]
