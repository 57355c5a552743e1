"""The package of clients/python over TLS; tests/clients/tls.sh runs it."""
import os

from holdfast import Store, UnavailableError

shown = dict(ssl_certfile=os.environ["TLS_CERT"], ssl_keyfile=os.environ["TLS_KEY"], ssl_ca_certs=os.environ["TLS_CA"])
store = Store.connect(f"rediss://localhost:{os.environ['TLS_PORT']}", **shown)
store.put("user:7", {"name": "Ada"})
record = store.get("user:7")
assert store.is_holdfast and record is not None and record.text("name") == "Ada"

# Without a certificate, and with an authority that has not signed the server's: the error says that it was the certificate.
for wrong in (dict(ssl_ca_certs=os.environ["TLS_CA"]), shown | dict(ssl_ca_certs=os.environ["TLS_CERT"])):
    try:
        Store.connect(f"rediss://localhost:{os.environ['TLS_PORT']}", **wrong)
    except UnavailableError as error:
        assert "certificate" in str(error).lower(), error
    else:
        raise AssertionError(f"{wrong} got in")
