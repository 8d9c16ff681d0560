"""What is done to API servers, and the embedded one as a program: each module is a worker of bench_server.py."""
