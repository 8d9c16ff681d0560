"""log, exec, attach and port-forward: carries streams between clients and the containers of nodes."""
