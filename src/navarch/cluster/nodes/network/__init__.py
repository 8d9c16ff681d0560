"""The network of one cluster on one machine: loopback addresses, hosts files, proxies of services."""
