"""The package of clients/python over TLS; tests/clients/tls.sh runs it."""
import os

from holdfast import Store

shown = dict(ssl_certfile=os.environ["TLS_CERT"], ssl_keyfile=os.environ["TLS_KEY"], ssl_ca_certs=os.environ["TLS_CA"])
store = Store.connect(f"rediss://localhost:{os.environ['TLS_PORT']}", **shown)
store.put("user:7", {"name": "Ada"})
record = store.get("user:7")
assert store.is_holdfast and record is not None and record.text("name") == "Ada"
