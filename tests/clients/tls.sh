#!/usr/bin/env bash
# The clients that people use, over TLS: tls.sh WORK starts $HOLDFAST_BIN with a port for TLS that wants certificates, and runs a small
# program of each client against it. Each program connects with a certificate, sends large values, waits and subscribes, and is refused without a
# certificate. Each prints a line; the last line counts them. Needs the packages of the other suites, which scripts/test installs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

work=$1 python=${2:-python3}
trap stop_server EXIT

tests/clients/make-certificates.sh "$work/certificates" || exit
certificates=$(realpath "$work/certificates")
port=$(free_port)
start_server "$work" "$HOLDFAST_BIN" --tls-port "$port" --tls-cert-file "$certificates/server.crt" --tls-key-file "$certificates/server.key" \
    --tls-ca-cert-file "$certificates/ca.crt" || exit
export TLS_PORT=$port TLS_CA=$certificates/ca.crt TLS_CERT=$certificates/client.crt TLS_KEY=$certificates/client.key

cli() { timeout 60 redis-cli -h 127.0.0.1 -p "$port" --tls --cacert "$TLS_CA" "$@"; }
cli_with() { cli --cert "$TLS_CERT" --key "$TLS_KEY" "$@"; }

redis_cli() {
    local value
    value=$(head -c 100000 /dev/zero | tr '\0' x)
    [[ $(cli_with SET greeting hello) == OK && $(cli_with GET greeting) == hello ]] || return
    [[ $(printf 'SET large %s\nSTRLEN large\nGET large\n' "$value" | cli_with) == $'OK\n100000\n'"$value" ]] || return
    [[ $(cli_with --tls-ciphersuites TLS_AES_128_GCM_SHA256 PING) == PONG ]] || return
    # Without a certificate, and without TLS.
    [[ $(cli PING 2>&1) != PONG && $(timeout 10 redis-cli -h 127.0.0.1 -p "$port" PING 2>&1) != PONG ]]
}

check 'redis-cli' redis_cli
check 'redis-py' timeout 120 "$python" tests/clients/python/tls.py
check 'the Python package' timeout 120 env PYTHONPATH=clients/python/src "$python" tests/clients/python/tls_package.py
check 'node-redis' timeout 120 node tests/clients/node/tls-node-redis.js
check 'ioredis' timeout 120 node tests/clients/node/tls-ioredis.js
check 'the TypeScript package' timeout 120 node tests/clients/node/tls-package.js
check 'the Rust package' timeout 120 cargo run --quiet --locked --manifest-path tests/clients/rust/Cargo.toml --example tls_package
check 'the redis crate' timeout 120 cargo run --quiet --locked --manifest-path tests/clients/rust/Cargo.toml --example tls
echo "tls: $passed passed, $failed failed"
[[ $failed == 0 ]]
