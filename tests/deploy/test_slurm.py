"""The Slurm script is run as Slurm would, with an `srun` that says how it was called."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "deploy" / "slurm" / "train.sbatch"
JOB = {"SLURM_JOB_ID": "734512", "SLURM_JOB_NODELIST": "node[07-09]", "SLURM_JOB_NUM_NODES": "3"}
HOSTS = '[ "$*" = "show hostnames node[07-09]" ] && printf "node07\\nnode08\\nnode09\\n"\n'


def example() -> list[str]:
    """The arguments of the command in the script's own comment."""
    found = re.search(r"^# +sbatch .*train\.sbatch (.*)$", SCRIPT.read_text(encoding="utf-8"), re.M)
    assert found
    return shlex.split(found.group(1))


def test_every_node_starts_torchrun_which_starts_training(programs: Any, launched: Any) -> None:
    programs.add("scontrol", HOSTS)
    programs.add("srun")
    done = programs.run("bash", str(SCRIPT), *example(), "training.seed=7", **JOB)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    called = programs.called("srun")
    torchrun, train = launched(called[called.index("torchrun") + 1 :])
    assert (torchrun.nnodes, torchrun.nproc_per_node) == ("3", "1")
    assert (torchrun.rdzv_backend, torchrun.rdzv_endpoint, torchrun.rdzv_id) == ("c10d", "node07:29912", "734512")
    assert torchrun.max_restarts == 3
    assert train["corpus"] == ["/shared/train.en", "/shared/train.de", "training.seed=7"]
    assert train["output"] == Path("/shared/run")


def test_a_rank_for_each_gpu(programs: Any, launched: Any) -> None:
    programs.add("scontrol", HOSTS)
    programs.add("srun")
    assert programs.run("bash", str(SCRIPT), *example(), **JOB, SLURM_GPUS_ON_NODE="4").returncode == 0
    called = programs.called("srun")
    assert launched(called[called.index("torchrun") + 1 :])[0].nproc_per_node == "4"


def test_what_fails_is_not_hidden(programs: Any) -> None:
    programs.add("scontrol", HOSTS)
    programs.add("srun", "exit 9\n")
    assert programs.run("bash", "-n", str(SCRIPT)).returncode == 0
    assert programs.run("bash", str(SCRIPT), *example(), **JOB).returncode == 9
    done = programs.run("bash", str(SCRIPT), **JOB)
    assert (done.returncode, "-o /shared/run" in done.stderr) == (2, True)
    done = programs.run("bash", str(SCRIPT), *example())  # not by sbatch
    assert done.returncode == 1
    assert "SLURM_JOB_NODELIST" in done.stderr


def test_slurm_reads_all_options_and_starts_one_task_a_node() -> None:
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    first_command = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", "\n".join(lines[:first_command]), re.M))
    assert sum(line.startswith("#SBATCH") for line in lines) == len(options), "sbatch reads none after a command"
    assert options["ntasks-per-node"] == "1", "torchrun starts the ranks of a node"
    assert "requeue" in options
    assert options["signal"].startswith("TERM@"), "training saves when it hears SIGTERM"
