"""The operator as a program: `python -m memcached_operator`."""

from navarch.operator import main

if __name__ == "__main__":
    main("memcached_operator")
