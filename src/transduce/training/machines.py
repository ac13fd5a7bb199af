"""What a run can be planned for: devices by name, and machines made of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEVICES", "Device", "Machine"]


@dataclass(frozen=True)
class Device:
    """What computes; figures of the makers, but for the utilisation."""

    name: str
    flops: float
    """Operations a second at best, in the precision that training uses there."""
    memory: float | None
    """Bytes; None if it is not known."""
    watts: float
    """While training, at most."""
    utilisation: float
    """Assumed share of `flops` that training reaches."""
    half: bool = False
    """Whether training computes in bfloat16 there."""


DEVICES = {
    device.name: device
    for device in (
        Device("cpu", 384e9, None, watts=45, utilisation=0.4),  # four cores of 3 GHz with AVX2: 32 operations a cycle
        Device("p100", 9.5e12, 16e9, watts=300, utilisation=0.42),  # the paper's figure for single precision
        Device("v100", 15.7e12, 16e9, watts=300, utilisation=0.42),
        Device("a100", 312e12, 40e9, watts=400, utilisation=0.3, half=True),
        Device("h100", 989e12, 80e9, watts=700, utilisation=0.25, half=True),
    )
}


@dataclass(frozen=True)
class Machine:
    """Some devices of one kind, and what joins them."""

    device: Device
    count: int = 1
    memory: float | None = None
    """Bytes of each; None if they are not known."""
    bandwidth: float = 10e9
    """Bytes a second that each sends to another while it receives as many."""
    workers: int = 1
    """Threads that share a batch, on a CPU."""
    sharded: bool = False
    """Whether weights, gradients and what the optimiser remembers are shared out among the devices (FSDP)."""

    @property
    def is_cpu(self) -> bool:
        """Where the memory is the process's, and a batch is done in parts."""
        return self.device.name == "cpu"
