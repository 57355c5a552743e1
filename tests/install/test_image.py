"""The Dockerfile: the steps of its last stage, run in a tree of its base; then the entry point and the health check."""
import json
import re
import shlex
import shutil
import signal

import pytest
from tree import BINARY, REPOSITORY, Tree, ask, free_port, until

DOCKERFILE = REPOSITORY / "docker/Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the file: name and the rest, with lines that go on put together."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def last_stage() -> tuple[str, list[tuple[str, str]]]:
    """The release of Debian that it is based on, and what is done there."""
    found = instructions()
    begin = max(index for index, (name, _) in enumerate(found) if name == "FROM")
    suite = re.fullmatch(r"debian:([a-z]+)-slim", found[begin][1]).group(1)
    return suite, found[begin + 1:]


class Image:
    """What the instructions have made."""

    def __init__(self):
        suite, steps = last_stage()
        self.tree = Tree("image", suite)
        self.variables, self.volumes = {}, []
        for name, rest in steps:
            getattr(self, f"do_{name.lower()}")(rest)

    def do_run(self, rest):
        self.tree.run("sh", "-c", rest)

    def do_copy(self, rest):
        *options, source, target = rest.split()
        # What the first stage has built is the binary under test.
        found = BINARY if options == ["--from=builder"] and source == "/src/target/dist/holdfast" else REPOSITORY / source
        self.tree.path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(found, self.tree.path(target))

    def do_env(self, rest):
        self.variables.update(word.split("=", 1) for word in shlex.split(rest))

    def do_user(self, rest):
        self.account = rest

    def do_workdir(self, rest):
        self.directory = rest

    def do_volume(self, rest):
        self.volumes.append(rest)

    def do_expose(self, rest):
        self.port = rest

    def do_healthcheck(self, rest):
        self.health = json.loads(rest[rest.index("CMD") + 3:])

    def do_entrypoint(self, rest):
        self.entry = json.loads(rest)

    def words(self, command: list[str]) -> list[str]:
        """A command as a container runs it."""
        user = self.account
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
                "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", self.directory, *command]


@pytest.fixture(scope="module")
def image():
    image = Image()
    yield image
    image.tree.remove()


def test_it_does_not_run_as_root(image):
    assert image.account == "holdfast"
    assert image.tree.run("id", "-u", image.account).stdout == "999\n"
    assert image.volumes == [image.directory] and image.tree.owner_and_mode(image.directory)[0] == "holdfast:holdfast"
    assert image.port == "6379"


@pytest.mark.parametrize("password", [None, "s3cret"])
def test_a_container_becomes_healthy_and_stops(image, password):
    port = free_port()
    variables = {**image.variables, "HOLDFAST_PORT": port, **({"HOLDFAST_REQUIREPASS": password} if password else {})}
    # Only this machine is to reach the test.
    variables["HOLDFAST_BIND"] = "127.0.0.1"
    process = image.tree.start(*image.words(image.entry), variables=variables)
    try:
        def healthy():
            assert process.poll() is None, image.tree.log()
            return image.tree.run(*image.words(image.health), variables=variables, check=False).returncode == 0
        until("it is healthy", healthy)
        assert ask(port, "SET", "key", "value", password=password) == "+OK"
        assert list(image.tree.path(image.directory).iterdir()), "the data is in the volume"
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, image.tree.log()
        assert not healthy_after_the_end(image, variables)
    finally:
        process.kill()
        process.wait()


def healthy_after_the_end(image, variables) -> bool:
    return image.tree.run(*image.words(image.health), variables=variables, check=False).returncode == 0
