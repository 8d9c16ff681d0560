"""The operator as a program: `python -m etcd_operator`."""

from navarch.operator import main

if __name__ == "__main__":
    main("etcd_operator")
