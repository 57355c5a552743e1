"""The CLIENT command: who is connected, under what name, and how to pause or end them."""

import threading

import pytest
import redis


def test_client_info(r):
    info = r.client_info()
    assert info["id"] == r.client_id()
    assert info["cmd"] == "client|info"
    assert info["user"] == "default"
    assert info["flags"] == "N"
    assert info["db"] == 0
    assert {"addr", "laddr", "fd", "name", "age", "idle", "sub", "multi", "qbuf", "obl", "omem", "resp"} <= set(info)


def test_client_resp_version(r, protocol):
    assert int(r.client_info()["resp"]) == protocol


def test_client_list(r, connect):
    other = connect(client_name="other")
    ids = {str(r.client_id()), str(other.client_id())}
    listed = {entry["id"]: entry for entry in r.client_list()}
    assert ids <= set(listed)
    assert listed[str(other.client_id())]["name"] == "other"
    assert [entry["id"] for entry in r.client_list(client_id=[other.client_id()])] == [str(other.client_id())]
    assert ids <= {entry["id"] for entry in r.client_list(_type="normal")}
    assert r.client_list(_type="pubsub") == []


def test_client_setname(r):
    assert r.client_getname() is None
    assert r.client_setname("worker-1") is True
    assert r.client_getname() == "worker-1"
    assert r.client_info()["name"] == "worker-1"
    with pytest.raises(redis.ResponseError, match="Client names cannot contain spaces, newlines or special characters"):
        r.client_setname("worker 1")
    r.client_setname("")
    assert r.client_getname() is None


def test_client_setinfo(r, need):
    need("client|setinfo")
    assert r.client_setinfo("LIB-NAME", "mine") is True
    assert r.client_setinfo("lib-ver", "1.2") is True
    info = r.client_info()
    assert (info["lib-name"], info["lib-ver"]) == ("mine", "1.2")
    with pytest.raises(redis.ResponseError, match="Unrecognized option 'nosuch'"):
        r.client_setinfo("nosuch", "1")


def test_client_kill_by_id(r, connect):
    other = connect()
    doomed = other.client_id()
    assert r.client_kill_filter(_id=doomed) == 1
    assert r.client_kill_filter(_id=doomed) == 0
    assert doomed not in [int(entry["id"]) for entry in r.client_list()]
    assert other.client_id() != doomed


def test_client_kill_by_address(r, connect):
    doomed = connect().client_info()
    assert r.client_kill(doomed["addr"]) is True
    with pytest.raises(redis.ResponseError, match="No such client"):
        r.client_kill(doomed["addr"])


def test_client_pause_holds_writes_only(r, connect):
    r.set("k", "before")
    writer, done = connect(), threading.Event()
    writer.ping()
    assert r.client_pause(60_000, all=False) is True
    thread = threading.Thread(target=lambda: (writer.set("k", "after"), done.set()))
    thread.start()
    assert not done.wait(0.2)
    assert r.get("k") == "before"
    r.client_unpause()
    thread.join()
    assert r.get("k") == "after"


def test_client_no_evict(r):
    assert r.client_no_evict("ON") in (True, "OK")
    assert "e" in r.client_info()["flags"]
    assert r.client_no_evict("OFF") in (True, "OK")


def test_client_reply_skip(connect):
    only = connect(single_connection_client=True)
    only.ping()
    only.connection.send_command("CLIENT", "REPLY", "SKIP")
    only.connection.send_command("SET", "k", "v")
    assert only.get("k") == "v"
