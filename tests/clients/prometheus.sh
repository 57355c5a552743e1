#!/usr/bin/env bash
# Prometheus as people run it: prometheus.sh WORK starts $HOLDFAST_BIN with a port for operators and a password. promtool reads its metrics and
# checks the alert rules, and a Prometheus scrapes it until it has what it needs. Each check prints a line; the last line counts them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

work=$1 prometheus_pid=
finish() {
    if [[ -n $prometheus_pid ]]; then kill "$prometheus_pid" 2>/dev/null; wait "$prometheus_pid" 2>/dev/null; fi
    stop_server
}
trap finish EXIT

admin=$(free_port)
start_server "$work" "$HOLDFAST_BIN" --admin-port "$admin" || exit
port=${server_addr##*:}
cli() { timeout 60 redis-cli -h 127.0.0.1 -p "$port" "$@"; }
for line in 'SET a 1' 'GET a' 'LPUSH a 1' 'IDX.CREATE jobs PREFIX 1 job: FIELD due GROUP tenant HELD state 1 running' 'IDX.LIMIT jobs ALL RATE 5 1000 HELD 9' \
    'IDX.LIMIT jobs EACH RATE 1 1000 HELD 5' 'HSET job:1 due 1700000000000 tenant acme'; do
    # shellcheck disable=SC2086 # words of a command
    cli $line >/dev/null || exit
done
cli HSET job:2 due 1700000000000 tenant 'a"b\\c' >/dev/null || exit
cli ACL SETUSER prometheus on '>secret' +info >/dev/null || exit
cli CONFIG SET requirepass other >/dev/null || exit

# promtool also has opinions about names. Those of redis_exporter are as they are.
metrics_are_accepted() {
    local said
    curl --silent --show-error --fail --user prometheus:secret "http://127.0.0.1:$admin/metrics" >"$work/metrics.txt" || return
    grep -q '^redis_up 1$' "$work/metrics.txt" || return
    said=$(promtool check metrics <"$work/metrics.txt" 2>&1 | grep -v '^redis_[a-z_]* metric names should not contain abbreviated units$')
    [[ -z $said ]] || { echo "$said" && return 1; }
}

nobody_reads_without_a_password() { ! curl --silent --fail "http://127.0.0.1:$admin/metrics" >/dev/null; }

rules_are_accepted() { promtool check rules config/prometheus/alerts.yaml; }

rules_fire() { promtool test rules tests/clients/alerts.test.yaml; }

# A Prometheus that scrapes every second, until it can answer.
prometheus_scrapes() {
    local listen query answer
    listen=127.0.0.1:$(free_port)
    rm -rf "$work/prometheus"
    mkdir -p "$work/prometheus"
    cat >"$work/prometheus/prometheus.yml" <<EOF
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$(realpath config/prometheus/alerts.yaml)"]
scrape_configs:
  - job_name: holdfast
    static_configs: [{ targets: ["127.0.0.1:$admin"] }]
    basic_auth: { username: prometheus, password: secret }
EOF
    promtool check config "$work/prometheus/prometheus.yml" >/dev/null || return
    prometheus --config.file="$work/prometheus/prometheus.yml" --storage.tsdb.path="$work/prometheus/data" \
        --web.listen-address="$listen" >"$work/prometheus/log" 2>&1 </dev/null &
    prometheus_pid=$!
    for query in 'redis_up == 1' 'up{job="holdfast"} == 1' 'redis_commands_total{cmd="get"} == 1' \
        'holdfast_command_duration_seconds_bucket{cmd="get",le="+Inf"} == 1' \
        'holdfast_index_oldest_due_seconds{index="jobs"} > 300' 'ALERTS{alertname="HoldfastOldestDueRecord"}'; do
        for _ in {1..600}; do
            answer=$(curl --silent --get --data-urlencode "query=$query" "http://$listen/api/v1/query")
            [[ $answer == *'"value"'* ]] && continue 2
            kill -0 "$prometheus_pid" 2>/dev/null || break
            sleep 0.1
        done
        echo "no answer to $query: $answer"
        tail -n 5 "$work/prometheus/log"
        return 1
    done
}

check 'promtool accepts the metrics' metrics_are_accepted
check 'nobody reads them without a password' nobody_reads_without_a_password
check 'promtool accepts the alert rules' rules_are_accepted
check 'the alert rules fire when they should' rules_fire
check 'Prometheus scrapes the server' prometheus_scrapes
echo "metrics: $passed passed, $failed failed"
[[ $failed == 0 ]]
