"""What `bench_ship.py` compares: images of ours, of ko and of buildah, and the pods that run them."""
