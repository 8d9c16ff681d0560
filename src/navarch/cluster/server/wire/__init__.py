"""The wire: requests, bodies, protobuf and errors as the API has them."""
