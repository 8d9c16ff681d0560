"""What a worker says at its end. Imports as little as possible: it runs inside what is measured."""


def report_run(wall: float, count: int = 0, **more: float) -> None:
    """Seconds, how many objects, the peak of resident memory, and what else was found.

    The peak is read here and not from the kernel's accounting of ended processes, which begins with the size of the
    process that started this one.
    """
    with open("/proc/self/status") as status:  # noqa: PTH123 - pathlib would be an import of its own
        peak = next(line for line in status if line.startswith("VmHWM:")).split()[1]
    rest = "".join(f', "{name}": {value}' for name, value in more.items())
    print(f'{{"wall": {wall}, "count": {count}, "peak_mb": {int(peak) / 1024}{rest}}}')
