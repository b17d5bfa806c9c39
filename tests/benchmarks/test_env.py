"""`reversi bench env`: with little work its functions give plausible numbers, and the JSON has the keys that scripts read."""

from importlib.util import find_spec

import pytest

from benchmarks import env as speed
from train.jobs import provenance as machine

PEERS = {"pgx": "pgx", "openspiel": "pyspiel", "envpool": "envpool"}  # and the module that each is
RATES = {f"{name}_plies_per_second" for name in ("single", "aec", "vector", *PEERS)}
SPEEDUPS = {"vector_thread_speedup", "vector_thread_speedup_beside_busy_process", *(f"{peer}_ratio" for peer in PEERS)}
FIGURES = RATES | SPEEDUPS | {"agent_steps_per_second", "vector_plies_per_second_all_cores"}
KEYS = {"cpu", "versions"} | FIGURES


@pytest.mark.parametrize("opponent", [None, "random"])
def test_the_single_environments_rate(opponent):
    assert 1_000 < speed.single_rate(opponent, plies=500, repeats=1) < 5_000_000


def test_the_aec_environments_rate():
    assert 1_000 < speed.aec_rate(plies=300, repeats=1) < 5_000_000


def test_the_vector_environments_rates():
    one, every = speed.vector_rates(steps=2, repeats=2)
    assert one > 10_000
    assert every > 10_000


def test_peers_that_are_not_installed_have_no_rate(monkeypatch):
    monkeypatch.setattr(speed.peers, "find_spec", lambda name: None)
    assert speed.peer_rates() == dict.fromkeys(PEERS)


def bench_json(monkeypatch, json_lines, peers):
    """The command's JSON, with the measurements made short."""
    single, aec, vector, speedup = speed.single_rate, speed.aec_rate, speed.vector_rates, speed.vector_speedup
    monkeypatch.setattr(speed, "single_rate", lambda opponent, plies, repeats: single(opponent, 300, 1))
    monkeypatch.setattr(speed, "aec_rate", lambda plies, repeats: aec(300, 1))
    monkeypatch.setattr(speed, "vector_rates", lambda steps, repeats: vector(1, 1))
    monkeypatch.setattr(speed, "vector_speedup", lambda steps, repeats: speedup(1, 1))
    monkeypatch.setattr(speed, "peer_rates", lambda: peers)
    [result] = json_lines("bench", "env")
    return result


def test_the_json_has_its_keys(monkeypatch, json_lines):
    found = bench_json(monkeypatch, json_lines, {"pgx": 200_000.0, "openspiel": 50_000.0, "envpool": 20_000.0})
    assert set(found) == KEYS
    assert found["cpu"] == machine.cpu_name()
    assert found["pgx_ratio"] == pytest.approx(found["vector_plies_per_second"] / 200_000)
    assert found["openspiel_ratio"] == pytest.approx(found["single_plies_per_second"] / 50_000)
    assert all(found[key] > 0 for key in FIGURES)


def test_without_the_peers_their_values_are_null(monkeypatch, json_lines):
    found = bench_json(monkeypatch, json_lines, dict.fromkeys(PEERS))
    assert set(found) == KEYS
    assert [key for key in sorted(KEYS) if found[key] is None] == sorted(
        [f"{peer}_plies_per_second" for peer in PEERS] + [f"{peer}_ratio" for peer in PEERS]
    )


def test_the_table_names_what_is_missing(monkeypatch, json_lines, reversi):
    bench_json(monkeypatch, json_lines, dict.fromkeys(PEERS))
    _, table, _ = reversi("bench", "env")
    assert table.count("not installed") == 3
    assert "million plies/s" in table


@pytest.mark.slow
def test_the_peers_are_measured_where_they_are_installed():
    """Each in a process of its own, on one core; the environments are faster than all."""
    rates = speed.peer_rates()
    for peer, module in PEERS.items():
        assert (rates[peer] is None) == (find_spec(module) is None)
        assert rates[peer] is None or rates[peer] > 1_000
