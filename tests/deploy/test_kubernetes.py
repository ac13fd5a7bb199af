"""The Kubernetes files fit together, and fit what they start."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

import transduce

DEPLOY = Path(__file__).parents[2] / "deploy"


def objects(name: str) -> dict[str, Any]:
    """What a file asks for, by kind: one of each."""
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")))
    found = {document["kind"]: document for document in documents}
    assert len(found) == len(documents)
    return found


TRAIN, SERVE = objects("train.yaml"), objects("serve.yaml")
PODS = {"train": TRAIN["Job"]["spec"]["template"], "serve": SERVE["Deployment"]["spec"]["template"]}


def container(name: str) -> dict[str, Any]:
    (only,) = PODS[name]["spec"]["containers"]
    return dict(only)


def mount(name: str, path: str) -> dict[str, Any]:
    """The mount that a path is on, and its volume."""
    (found,) = [
        each for each in container(name)["volumeMounts"] if PurePosixPath(path).is_relative_to(each["mountPath"])
    ]
    (volume,) = [each for each in PODS[name]["spec"]["volumes"] if each["name"] == found["name"]]
    return {"readOnly": False} | found | {"volume": volume}


def test_each_kind_is_asked_for_by_its_own_version() -> None:
    versions = {kind: each["apiVersion"] for file in (TRAIN, SERVE) for kind, each in file.items()}
    core = dict.fromkeys(("PersistentVolumeClaim", "Service"), "v1")
    assert versions == core | {"Job": "batch/v1", "Deployment": "apps/v1"}


@pytest.mark.parametrize("name", ["train", "serve"])
def test_pods_have_few_rights_and_a_known_image(name: str) -> None:
    pod, inside = PODS[name]["spec"]["securityContext"], container(name)["securityContext"]
    user = re.findall(r"^USER (\d+):(\d+)$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.M)
    assert [(str(pod["runAsUser"]), str(pod["runAsGroup"]))] == user
    assert pod["runAsNonRoot"]
    assert inside == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "emptyDir" in mount(name, "/tmp/file")["volume"], "nothing else can be written to"
    assert container(name)["image"] == f"transduce:{transduce.__version__}"
    assert PODS[name]["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(("file", "pod"), [(TRAIN, "train"), (SERVE, "serve")], ids=["train", "serve"])
def test_the_service_finds_its_pods(file: dict[str, Any], pod: str) -> None:
    assert file["Service"]["spec"]["selector"].items() <= PODS[pod]["metadata"]["labels"].items()


@pytest.mark.parametrize("index", [0, 1])
def test_the_job_starts_torchrun_and_its_first_pod_is_where_ranks_meet(
    index: int, programs: Any, launched: Any
) -> None:
    programs.add("torchrun")
    done = programs.run(*container("train")["command"], *container("train")["args"], JOB_COMPLETION_INDEX=str(index))
    assert (done.returncode, done.stderr) == (0, "")
    torchrun, train = launched(programs.called("torchrun"))
    job, service = TRAIN["Job"]["spec"], TRAIN["Service"]
    assert job["completionMode"] == "Indexed"
    assert torchrun.nnodes == str(job["completions"]) == str(job["parallelism"])
    # Pods of an indexed job are called after the job and their index, within the domain of a headless service.
    assert PODS["train"]["spec"]["subdomain"] == service["metadata"]["name"]
    name = f"{TRAIN['Job']['metadata']['name']}-0.{service['metadata']['name']}"
    assert torchrun.rdzv_endpoint == f"{name}:{service['spec']['ports'][0]['port']}"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert torchrun.rdzv_backend == "c10d"
    assert torchrun.rdzv_conf == f"is_host={str(index == 0).lower()}"
    assert torchrun.max_restarts > 0
    assert PODS["train"]["spec"]["restartPolicy"] == "OnFailure"

    claim = TRAIN["PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for path in (*train["corpus"], str(train["output"])):
        place = mount("train", path)
        assert place["volume"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert not place["readOnly"]


def test_the_job_hands_signals_to_torchrun() -> None:
    assert re.search(r"^exec torchrun ", container("train")["args"][0], re.M), "else the shell keeps SIGTERM to itself"


def test_the_deployment_serves_what_was_trained_and_cannot_change_it(serve_options: Any, launched: Any) -> None:
    command = container("serve")["command"]
    assert command[:2] == ["transduce", "serve"]
    options = serve_options(command[2:])
    words = container("train")["args"][0].replace("\\\n", " ").split("exec torchrun ")[1].split()
    (model,) = options["model"]
    assert Path(model) == launched(words)[1]["output"]
    place = mount("serve", model)
    assert place["readOnly"]
    claim = {"claimName": TRAIN["PersistentVolumeClaim"]["metadata"]["name"], "readOnly": True}
    assert place["volume"]["persistentVolumeClaim"] == claim
    assert options["host"] == "0.0.0.0"
    assert PODS["serve"]["spec"]["terminationGracePeriodSeconds"] > options["drain"] + options["grace"]


def test_the_deployment_is_asked_by_probes_and_by_its_service(serve_options: Any) -> None:
    inside = container("serve")
    (port,) = inside["ports"]
    assert port["containerPort"] == serve_options(inside["command"][2:])["port"]
    assert SERVE["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    probes = {name: probe["httpGet"] for name, probe in inside.items() if name.endswith("Probe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    # A replica that stops must be left out before it takes no more.
    ready = inside["readinessProbe"]
    noticed = ready["periodSeconds"] * ready["failureThreshold"]
    assert noticed < serve_options(inside["command"][2:])["drain"]
    labels = PODS["serve"]["metadata"]["labels"]
    assert SERVE["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert SERVE["Deployment"]["spec"]["replicas"] >= 2
    assert SERVE["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
