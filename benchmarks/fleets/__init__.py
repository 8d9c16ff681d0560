"""What is done to clusters, and the embedded one as a program: each module is a worker of bench_cluster.py."""
