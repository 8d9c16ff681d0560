"""What a worker says at its end. Imports as little as possible: it runs inside what is measured."""


def report_run(wall: float, count: int = 0) -> None:
    """Seconds, how many objects, and the peak of resident memory.

    The peak is read here and not from the kernel's accounting of ended processes, which begins with the size of the
    process that started this one.
    """
    with open("/proc/self/status") as status:  # noqa: PTH123 - pathlib would be an import of its own
        peak = next(line for line in status if line.startswith("VmHWM:")).split()[1]
    print(f'{{"wall": {wall}, "count": {count}, "peak_mb": {int(peak) / 1024}}}')
