"""Runs the Python of a document, top to bottom in one program: run_document.py DOCUMENT PORT [BLOCKS]

Runs only the first BLOCKS blocks, if that is given.
What connects to the default port, 6379, is led to PORT on this machine, so that the blocks are run as they are written. A block behind a line
`<!-- not run: reason -->` is left out. Knows Markdown's fences, and nothing of what the blocks do.
"""

import re
import socket
import sys
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^(?P<before><!-- not run: .+ -->\n\n?)?```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_DEFAULT_PORT = 6379


def blocks(document: Path) -> list[tuple[int, str]]:
    """The blocks that are run: the line before each, and its code."""
    text = document.read_text()
    found = (match for match in _FENCE.finditer(text) if match["before"] is None)
    return [(text.count("\n", 0, match.start("code")), match["code"]) for match in found]


def lead_default_port_to(port: int) -> None:
    connect = socket.socket.connect

    def lead(self: socket.socket, address: Any) -> None:
        if not isinstance(address, tuple) or address[1] != _DEFAULT_PORT:
            return connect(self, address)
        if self.family != socket.AF_INET:
            raise ConnectionRefusedError("the server of the test listens on 127.0.0.1 alone")
        return connect(self, ("127.0.0.1", port))

    setattr(socket.socket, "connect", lead)


def main() -> None:
    document, port = Path(sys.argv[1]), int(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else None
    lead_default_port_to(port)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, code in blocks(document)[:count]:
        # The lines of errors are those of the document.
        exec(compile("\n" * line + code, str(document), "exec"), names)


if __name__ == "__main__":
    main()
