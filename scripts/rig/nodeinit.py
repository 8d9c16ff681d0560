"""Process 1 of a node: runs containerd, kubelet, kube-proxy and CoreDNS where they can be removed without a trace.

It is started in a process namespace, a mount namespace and a network namespace of its own. When process 1 of a process
namespace ends, the kernel kills every process in it: kubelet, containerd, its shims, every container. When the last
process of a mount namespace is gone, so are its mounts: root file systems, volumes, the network namespaces of pods. With
the network namespace go its interfaces, routes and iptables rules. So a node needs no stopping beyond the end of this
process, and no death of ours, however sudden, leaves anything behind.

It reads one command per line from its standard input, as JSON `{"command": [...], "log": "..."}`, starts it, and ends
when the input ends or when a program it started ends. It reaps the orphans, as process 1 must.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

COVERED = ("/run", "/var/log", "/var/lib")
"""Where containerd, CNI and the kubelet write at fixed paths (/run/containerd/s, /run/netns, /var/log/containers,
/var/lib/cni, /var/lib/kubelet/device-plugins): the node sees its own version of these folders."""

SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
"""What a kubelet sets for the whole machine when it starts, and does not start without setting."""


def main(scratch: Path) -> None:
    """Prepare the mounts, then obey until the input ends."""
    _prepare_mounts(scratch)
    started: dict[int, Path] = {}
    begun = threading.Event()
    threading.Thread(target=_reap, args=(started, begun), daemon=True).start()
    for line in sys.stdin:
        order = json.loads(line)
        log = Path(order["log"])
        with log.open("ab") as output:
            process = subprocess.Popen(order["command"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        started[process.pid] = log
        begun.set()
    os._exit(0)


def _prepare_mounts(scratch: Path) -> None:
    """Cover the fixed paths; what is mounted later is shared inside the namespace, as containers expect."""
    _mount("-t", "proc", "proc", "/proc")
    for covered in ("/run", "/var/log"):
        _mount("-t", "tmpfs", "-o", "mode=755", "navarch-rig", covered)
    _shield_settings(scratch / "settings")
    upper, work = scratch / "upper", scratch / "work"
    upper.mkdir()
    work.mkdir()
    _mount("-t", "overlay", "-o", f"lowerdir=/var/lib,upperdir={upper},workdir={work}", "navarch-rig", "/var/lib")
    _mount("--make-rshared", "/")


def _shield_settings(copies: Path) -> None:
    """Let the kubelet write into copies: the machine's own settings are not ours to change."""
    copies.mkdir(parents=True)
    for setting in (Path("/proc/sys") / name for name in SETTINGS):
        copy = copies / setting.name
        copy.write_text(setting.read_text())
        _mount("--bind", str(copy), str(setting))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _reap(started: dict[int, Path], begun: threading.Event) -> None:
    """Collect ended children; if one of them is a program we were told to run, the node has failed."""
    begun.wait()
    while True:
        pid, status = os.wait()  # never without children: containerd and the kubelet stay
        if pid in started:
            last_words = started[pid].read_text(errors="replace").splitlines()[-12:]
            code = os.waitstatus_to_exitcode(status)
            print(
                f"{started[pid].stem} ended with exit code {code}:", *last_words, sep="\n", file=sys.stderr, flush=True
            )
            os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
