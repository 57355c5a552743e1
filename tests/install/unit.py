"""What a unit of systemd says, as far as a test does the same, and the system calls that it allows."""
import re
import subprocess


class Unit:
    def __init__(self, text: str):
        self.lines = [line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#")]

    def all(self, name: str) -> list[str]:
        return [value for found, value in self.lines if found == name]

    def one(self, name: str) -> str:
        values = self.all(name)
        assert len(values) == 1, f"{name}: {values}"
        return values[0]

    def allowed_system_calls(self) -> set[str]:
        groups, allowed = system_call_groups(), set()
        for value in self.all("SystemCallFilter"):
            named = expand(value.removeprefix("~").split(), groups)
            allowed = allowed - named if value.startswith("~") else allowed | named
        return allowed


def system_call_groups() -> dict[str, list[str]]:
    """The groups that systemd knows, such as @file-system, with their members."""
    groups, members = {}, []
    for line in subprocess.run(["systemd-analyze", "syscall-filter"], check=True, capture_output=True, text=True).stdout.splitlines():
        if line.startswith("@"):
            members = groups.setdefault(line.strip(), [])
        elif line.startswith(" ") and not line.strip().startswith("#"):
            members.append(line.strip())
    return groups


def expand(names: list[str], groups: dict[str, list[str]]) -> set[str]:
    return {call for name in names for call in (expand(groups[name], groups) if name.startswith("@") else {name})}


def system_calls(trace: str, program: str) -> set[str]:
    """The calls that a trace of strace has, from the moment on in which the program begins."""
    begin = trace.index(f'execve("{program}"')
    return set(re.findall(r"^(?:\d+ +)?(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed>)", trace[begin:], re.MULTILINE))


def address_families(trace: str, program: str) -> set[str]:
    """The kinds of sockets that the program makes."""
    return set(re.findall(r"\bsocket\((AF_[A-Z0-9]+)", trace[trace.index(f'execve("{program}"'):]))


def written_paths(trace: str, program: str) -> set[str]:
    """What the program opens to write, makes, moves and removes, by its full paths; others are in its working directory."""
    found = set()
    for line in trace[trace.index(f'execve("{program}"'):].splitlines():
        opens = re.search(r"\bopenat?\(", line) and re.search(r"O_(WRONLY|RDWR|CREAT)", line)
        changes = re.search(r"\b(rename(at2?)?|unlink(at)?|mkdir(at)?|link(at)?|symlink(at)?|f?chmod(at)?|f?chown(at)?|truncate)\(", line)
        if opens or changes:
            found.update(re.findall(r'"(/[^"]*)"', line))
    return found


def writable_code(trace: str, program: str) -> list[str]:
    """Calls that MemoryDenyWriteExecute refuses."""
    lines = trace[trace.index(f'execve("{program}"'):].splitlines()
    mapped = [line for line in lines if "PROT_WRITE|PROT_EXEC" in line]
    return mapped + [line for line in lines if "mprotect(" in line and "PROT_EXEC" in line]
