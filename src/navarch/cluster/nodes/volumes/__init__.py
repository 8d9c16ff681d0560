"""What is mounted into containers, and kept up to date."""
