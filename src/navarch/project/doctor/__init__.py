"""What is missing on this machine, in this project and on its cluster, with the command that fixes it."""
