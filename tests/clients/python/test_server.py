"""What the server tells about itself: INFO, CONFIG, COMMAND, SLOWLOG, MEMORY, LATENCY, DEBUG, MONITOR."""

import pytest
import redis


def test_info_default_sections(r):
    r.set("k", "v", ex=100)
    info = r.info()
    expected = """
        redis_version redis_mode os process_id run_id tcp_port uptime_in_seconds connected_clients blocked_clients
        used_memory used_memory_human maxmemory_policy loading aof_enabled total_connections_received
        total_commands_processed keyspace_hits keyspace_misses expired_keys role connected_slaves used_cpu_user
        cluster_enabled
    """
    assert set(expected.split()) - set(info) == set()
    assert info["redis_mode"] == "standalone"
    assert info["role"] == "master"
    assert info["db0"]["keys"] == 1
    assert info["db0"]["expires"] == 1
    assert len(info["run_id"]) == 40


@pytest.mark.parametrize(("section", "field"), [
    ("server", "redis_version"), ("clients", "maxclients"), ("memory", "used_memory"),
    ("persistence", "loading"), ("stats", "total_commands_processed"), ("replication", "master_replid"),
    ("cpu", "used_cpu_sys"), ("commandstats", "cmdstat_ping"), ("cluster", "cluster_enabled"),
])  # fmt: skip
def test_info_by_section(r, section, field):
    r.ping()
    info = r.info(section)
    assert field in info
    assert section == "server" or "redis_version" not in info


def test_config_get(r):
    assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert {"maxmemory", "maxmemory-policy"} <= set(r.config_get("maxmem*"))
    assert set(r.config_get("maxmemory", "port")) == {"maxmemory", "port"}
    assert r.config_get("nosuchparameter") == {}
    assert int(r.config_get("databases")["databases"]) >= 16


def test_config_set(r, setting):
    assert setting("maxmemory", "100mb") is True
    assert r.config_get("maxmemory") == {"maxmemory": str(100 << 20)}
    setting("slowlog-max-len", 64)
    assert r.config_get("slowlog-max-len") == {"slowlog-max-len": "64"}


def test_maxmemory_refuses_growth(r, setting):
    r.set("k", "v")
    setting("maxmemory", "1")
    with pytest.raises(redis.OutOfMemoryError):
        r.set("more", "v")
    assert r.get("k") == "v"
    assert r.delete("k") == 1


def test_command_table(r):
    table = r.command()
    assert r.command_count() == len(table)
    assert table["get"]["arity"] == 2
    assert "readonly" in table["get"]["flags"]
    assert table["set"]["arity"] == -3
    assert {"write", "denyoom"} <= set(table["set"]["flags"])
    assert (table["mset"]["first_key_pos"], table["mset"]["last_key_pos"], table["mset"]["step_count"]) == (1, -1, 2)


def test_command_info(r):
    hget, nothing = r.execute_command("COMMAND INFO", "hget", "nosuch")
    assert nothing is None
    assert hget[:2] == ["hget", 3]
    assert set(hget[2]) == {"readonly", "fast"}
    assert hget[3:6] == [1, 1, 1]
    assert set(hget[6]) == {"@read", "@hash", "@fast"}


def test_command_docs(r, protocol):
    docs = r.execute_command("COMMAND DOCS", "hset", "nosuch")
    if protocol == 2:
        assert docs[0] == "hset"
        about = dict(zip(docs[1][::2], docs[1][1::2]))
        assert len(docs) == 2
    else:
        assert set(docs) == {"hset"}
        about = docs["hset"]
    assert about["group"] == "hash"
    assert about["since"] == "2.0.0"
    assert "summary" in about and "complexity" in about and "arguments" in about


def test_command_getkeys(r):
    assert r.command_getkeys("MSET", "a", "1", "b", "2") == ["a", "b"]
    assert r.command_getkeys("HSET", "h", "f", "v") == ["h"]
    assert r.command_getkeysandflags("GET", "k") == [["k", ["RO", "access"]]]
    with pytest.raises(redis.ResponseError, match="The command has no key arguments"):
        r.command_getkeys("ECHO", "hello")


def test_command_list(r):
    assert {"get", "set", "hset"} <= set(r.command_list())
    assert set(r.command_list(pattern="hincr*")) == {"hincrby", "hincrbyfloat"}
    assert "hget" in r.command_list(category="hash")


def test_slowlog(r, setting):
    setting("slowlog-log-slower-than", 0)
    r.slowlog_reset()
    r.set("slow", "v" * 200)
    entry = next(entry for entry in r.slowlog_get(10) if entry["command"].startswith(b"SET slow"))
    command = entry["command"]
    assert command.startswith(b"SET slow v") and b"(72 more bytes)" in command
    assert set(entry) >= {"id", "start_time", "duration", "command", "client_address", "client_name"}
    assert r.slowlog_len() >= 1
    r.config_set("slowlog-log-slower-than", -1)
    assert r.slowlog_reset() is True
    assert r.slowlog_get() == []


def test_memory_usage(r):
    r.set("small", "v")
    r.set("large", "v" * 100_000)
    assert 0 < r.memory_usage("small") < 1000
    assert 100_000 <= r.memory_usage("large", samples=0) < 200_000
    assert r.memory_usage("absent") is None


def test_memory_stats(r):
    r.set("k", "v")
    stats = r.memory_stats()
    expected = """
        peak.allocated total.allocated startup.allocated clients.normal overhead.total keys.count keys.bytes-per-key
        dataset.bytes dataset.percentage fragmentation
    """
    assert set(expected.split()) - set(stats) == set()
    assert stats["keys.count"] == 1
    assert isinstance(stats["total.allocated"], int)
    assert r.memory_purge() is True


def test_latency_histogram(r, protocol):
    r.set("k", "v")
    reply = r.execute_command("LATENCY", "HISTOGRAM", "set", "nosuch")
    if protocol == 2:
        assert reply[0] == "set"
        histogram = dict(zip(reply[1][::2], reply[1][1::2]))
    else:
        assert list(reply) == ["set"]
        histogram = reply["set"]
    assert histogram["calls"] >= 1
    assert len(histogram["histogram_usec"]) >= 1


def test_monitor(r, connect):
    with connect().monitor() as monitor:
        r.set("watched key", 'va"lue\n')
        r.get("watched key")
        seen = []
        while not seen or not seen[-1]["command"].startswith("GET"):
            seen.append(monitor.next_command())
    commands = [entry["command"] for entry in seen]
    assert commands[-2].startswith("SET watched key ")
    assert commands[-1] == "GET watched key"
    assert {(entry["db"], entry["client_type"]) for entry in seen} == {(0, "tcp")}
