#!/usr/bin/env bash
# Makes certificates for tests and benchmarks: make-certificates.sh DIR. Writes an authority (ca.crt), a server for localhost
# and 127.0.0.1 (server.crt, server.key) and a client (client.crt, client.key) of that authority. Knows nothing of servers.
set -euo pipefail
mkdir -p "$1"
cd "$1"

# issue NAME: a certificate of the authority.
issue() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 30 \
        -extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1')
}

{
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj '/CN=authority of tests'
    issue server
    issue client
} 2>/dev/null
