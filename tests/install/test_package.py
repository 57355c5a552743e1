"""The Debian package: installed, started as its unit says, asked, stopped, removed, purged."""
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from tree import BINARY, Tree, ask, free_port, until
from unit import Unit, address_families, system_calls, writable_code, written_paths

DEB = Path(os.environ["HOLDFAST_TEST_DEB"])
UNIT = "/usr/lib/systemd/system/holdfast.service"
CONFIGURATION = "/etc/holdfast/holdfast.toml"
DATA = "/var/lib/holdfast"


@pytest.fixture(scope="module")
def tree():
    tree = Tree("package", "bookworm")
    shutil.copy(DEB, tree.path("holdfast.deb"))
    tree.run("apt-get", "install", "-qy", "--no-install-recommends", "/holdfast.deb")
    yield tree
    tree.remove()


def test_files_are_where_debian_has_them(tree):
    assert tree.run("holdfast", "--version").stdout == subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout
    assert tree.run("dpkg-query", "--show", "--showformat=${Status}", "holdfast").stdout == "install ok installed"
    conffiles = tree.run("dpkg-query", "--show", "--showformat=${Conffiles}", "holdfast").stdout
    assert [line.split()[0] for line in conffiles.splitlines() if line] == [CONFIGURATION]
    for path in ["man/man1/holdfast.1.gz", "man/man1/holdfast-ping.1.gz", "bash-completion/completions/holdfast",
                 "zsh/vendor-completions/_holdfast", "fish/vendor_completions.d/holdfast.fish", "doc/holdfast/copyright"]:
        # Parts of the base have their documentation left out; what a package brings is listed in any case.
        assert f"/usr/share/{path}\n" in tree.run("dpkg", "--listfiles", "holdfast").stdout, path


def test_the_documents_lead_to_what_the_package_has(tmp_path):
    subprocess.run(["dpkg-deb", "--extract", DEB, tmp_path], check=True)
    folder = tmp_path / "usr/share/doc/holdfast"
    documents = sorted(folder.rglob("*.md"))
    assert {str(document.relative_to(folder)) for document in documents} >= {"README.md", "docs/README.md", "docs/installing.md"}
    found = 0
    for document in documents:
        prose = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)|\bsrc=\"([^\"]+)\"", prose):
            path = "".join(target).partition("#")[0]
            if path and "://" not in path:
                found += 1
                place = tmp_path / path[1:] if path.startswith("/") else document.parent / path
                assert place.exists(), f"{document.relative_to(folder)}: {path}"
    assert found > 50


def test_the_user_owns_its_data_and_its_configuration(tree):
    entry = tree.run("getent", "passwd", "holdfast").stdout.split(":")
    assert entry[5:] == [DATA, "/usr/sbin/nologin\n"]
    assert tree.owner_and_mode(DATA) == ("holdfast:holdfast", "750")
    assert tree.owner_and_mode("/etc/holdfast") == ("holdfast:holdfast", "750")
    assert tree.owner_and_mode(CONFIGURATION) == ("holdfast:holdfast", "640")
    assert f'\ndir = "{DATA}"\n' in tree.path(CONFIGURATION).read_text()


def test_systemd_accepts_the_unit(tree, tmp_path):
    # The tree has no systemd, and this machine has no server: the unit is looked at here, with a binary that is here.
    unit = tmp_path / "holdfast.service"
    text = tree.path(UNIT).read_text()
    assert text.count("\nExecStart=/usr/bin/holdfast\n") == 1 and tree.path("/usr/bin/holdfast").exists()
    unit.write_text(text.replace("\nExecStart=/usr/bin/holdfast\n", f"\nExecStart={BINARY}\n"))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert [line for line in verified.stderr.splitlines() if "holdfast" in line] == []
    # The exposure, in tenths: systemd calls less than 2.0 "OK".
    secure = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", unit], capture_output=True, text=True)
    assert secure.returncode == 0, secure.stdout[-500:]


def test_the_service_runs_as_the_unit_says(tree):
    """As its user, with its variables and limits, without capabilities; it tells systemd's socket, and a probe, that it is ready."""
    unit = Unit(tree.path(UNIT).read_text())
    port = free_port()
    configuration = tree.path(CONFIGURATION).read_text()
    assert "\nport = 6379\n" in configuration
    tree.path(CONFIGURATION).write_text(configuration.replace("\nport = 6379\n", f"\nport = {port}\n"))
    variables = dict(line.split("=", 1) for line in unit.all("Environment"))
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(1)
    tree.path("/run/notify").unlink(missing_ok=True)
    manager.bind(str(tree.path("/run/notify")))
    tree.path("/run/notify").chmod(0o777)
    trace = tree.root / "trace"
    program = shlex.split(unit.one("ExecStart"))
    words = ["setpriv", f"--reuid={unit.one('User')}", f"--regid={unit.one('Group')}", "--clear-groups", "--no-new-privs", "--inh-caps=-all",
             "--bounding-set=-all", "sh", "-c", 'cd "$1" && umask "$2" && shift 2 && exec "$@"', "sh",
             unit.one("WorkingDirectory"), unit.one("UMask"), *program]
    # Not every root may raise it.
    files = min(int(unit.one("LimitNOFILE")), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    process = tree.start(*words, variables={**variables, "NOTIFY_SOCKET": "/run/notify"},
                         before=("prlimit", f"--nofile={files}", "strace", "--follow-forks", "--quiet=all", f"--output={trace}"))

    def told(message: str) -> bool:
        assert process.poll() is None, tree.log()
        try:
            return manager.recv(4096).decode().startswith(message)
        except TimeoutError:
            return False

    try:
        until("it tells that it is ready", lambda: told("READY=1"))
        assert tree.run("holdfast", "ping", variables=variables).stdout == "PONG\n"
        assert ask(port, "SET", "key", "value") == "+OK"
        assert ask(port, "GET", "key") == "value"
        assert ask(port, "BGSAVE").startswith("+")
        assert ask(port, "CONFIG", "SET", "timeout", "77") == "+OK"
        assert ask(port, "CONFIG", "REWRITE") == "+OK"
        assert "\ntimeout = 77\n" in tree.path(CONFIGURATION).read_text()
        server = ask_process(port)
        status = Path(f"/proc/{server}/status").read_text()
        assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
        assert f"Max open files            {files} " in Path(f"/proc/{server}/limits").read_text()
        os.kill(server, signal.SIGTERM)
        assert process.wait(120) == 0, tree.log()
        assert manager.recv(4096) == b"STOPPING=1"
    finally:
        process.kill()
        process.wait()
        manager.close()
    files = list(tree.path(DATA).iterdir())
    assert files and all(file.stat().st_mode & 0o077 == 0 for file in files if file.is_file()), files
    text = trace.read_text(errors="replace")
    calls = system_calls(text, program[0])
    assert {"execve", "accept4", "fdatasync", "rename"} <= calls, "the trace is that of a server"
    refused = calls - unit.allowed_system_calls()
    assert not refused, f"SystemCallFilter would refuse {refused}"
    assert not writable_code(text, program[0])
    assert address_families(text, program[0]) <= set(unit.one("RestrictAddressFamilies").split())
    # ProtectSystem=strict leaves these, and devices. /proc/self/fd is a directory of these, by its number.
    may_write = (f"/var/lib/{unit.one('StateDirectory')}/", *(path.removeprefix("-") + "/" for path in unit.all("ReadWritePaths")), "/dev/",
                 "/proc/self/fd/")
    written = written_paths(text, program[0])
    assert any(path.startswith(may_write) for path in written)
    assert [path for path in written if not f"{path}/".startswith(may_write)] == []
    # What was acknowledged is there, and what the administrator may look at says so.
    assert "1 string" in tree.run("holdfast", "check", variables=variables).stdout


def ask_process(port: str) -> int:
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(b"INFO server\r\n")
        received = b""
        while b"process_id:" not in received or not received.endswith(b"\n"):
            received += connection.recv(65536)
    return int(received.split(b"process_id:")[1].split(b"\r\n")[0])


def test_doctor_finds_the_installation_in_order(tree):
    said = tree.run("holdfast", "doctor", "--json", "--config", CONFIGURATION, check=False)
    assert said.returncode in (0, 1), said.stderr
    for check in ["directory-rights", "configuration-file", "persistence", "access"]:
        finding = next(part for part in said.stdout.split("{") if f'"check": "{check}"' in part)
        assert '"verdict": "good"' in finding, finding


def test_a_newer_package_keeps_what_an_administrator_has_decided(tree):
    tree.run("chmod", "0600", CONFIGURATION)
    before = tree.path(CONFIGURATION).read_text()
    tree.run("dpkg", "--install", "--force-confold", "/holdfast.deb")
    assert tree.path(CONFIGURATION).read_text() == before
    assert tree.owner_and_mode(CONFIGURATION) == ("holdfast:holdfast", "600")


def test_a_removal_keeps_the_data_and_a_purge_does_not(tree):
    tree.run("apt-get", "remove", "-qy", "holdfast")
    assert not tree.path("/usr/bin/holdfast").exists()
    assert list(tree.path(DATA).iterdir()) and tree.path(CONFIGURATION).exists()
    tree.run("apt-get", "purge", "-qy", "holdfast")
    assert not tree.path(DATA).exists() and not tree.path("/etc/holdfast").exists()
    assert tree.run("getent", "passwd", "holdfast", check=False).returncode != 0
    assert tree.run("dpkg-query", "--show", "holdfast", check=False).returncode != 0
