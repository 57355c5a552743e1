"""The manifests: valid for Kubernetes, true to each other, and their configuration and probes do what they are for."""
import subprocess
import urllib.request

import kubernetes_validate
import pytest
import yaml
from tree import BINARY, REPOSITORY, WORK, ask, free_port, until

MANIFESTS = sorted((REPOSITORY / "config/kubernetes").glob("*.yaml"))
VERSION = "1.30"


def documents() -> list[dict]:
    return [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text()) if document]


def of_kind(kind: str) -> list[dict]:
    return [document for document in documents() if document["kind"] == kind]


def test_all_kinds_are_there():
    assert {document["kind"] for document in documents()} == {"ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget"}


@pytest.mark.parametrize("document", documents(), ids=lambda document: f"{document['kind']}/{document['metadata']['name']}")
def test_kubernetes_accepts(document):
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_services_and_budgets_select_the_pods():
    (stateful_set,) = of_kind("StatefulSet")
    template = stateful_set["spec"]["template"]
    labels, ports = template["metadata"]["labels"], {port["name"] for port in container()["ports"]}
    assert stateful_set["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert stateful_set["spec"]["serviceName"] in {service["metadata"]["name"] for service in of_kind("Service")}
    for service in of_kind("Service"):
        assert service["spec"]["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for budget in of_kind("PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    claims = {claim["metadata"]["name"] for claim in stateful_set["spec"]["volumeClaimTemplates"]}
    volumes = claims | {volume["name"] for volume in template["spec"]["volumes"]}
    assert {mount["name"] for mount in container()["volumeMounts"]} == volumes


def container() -> dict:
    (stateful_set,) = of_kind("StatefulSet")
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    return container


def test_the_configuration_starts_a_server_and_the_probes_find_it_ready():
    (config_map,) = of_kind("ConfigMap")
    place = WORK / "kubernetes"
    (place / "data").mkdir(parents=True, exist_ok=True)
    for name, text in config_map["data"].items():
        (place / name).write_text(text)
    port, metrics = free_port(), free_port()
    # As in a pod, but for the places of files and the ports.
    given = {variable["name"]: variable.get("value", "s3cret") for variable in container()["env"]}
    assert given == {"HOLDFAST_CONFIG": "/etc/holdfast/holdfast.toml", "HOLDFAST_REQUIREPASS": "s3cret"}
    variables = {**given, "HOLDFAST_CONFIG": str(place / "holdfast.toml"), "HOLDFAST_DIR": str(place / "data"), "HOLDFAST_PORT": port,
                 "HOLDFAST_ADMIN_PORT": metrics}
    server = subprocess.Popen([BINARY], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        def probe(name: str) -> bool:
            assert server.poll() is None, "it ended"
            said = container()[name]
            if "exec" in said:
                program, *words = said["exec"]["command"]
                assert program == "holdfast"
                return subprocess.run([BINARY, *words], env=variables, capture_output=True).returncode == 0
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{metrics}{said['httpGet']['path']}").status == 200
            except OSError:
                return False
        for name in ["startupProbe", "readinessProbe", "livenessProbe"]:
            until(name, lambda name=name: probe(name))
        assert ask(port, "SET", "key", "value", password="s3cret") == "+OK"
    finally:
        server.kill()
        server.wait()
    failed = subprocess.run([BINARY, *container()["livenessProbe"]["exec"]["command"][1:]], env=variables, capture_output=True)
    assert failed.returncode == 1
