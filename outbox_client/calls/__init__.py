"""How calls travel: requests and answers, retries, shared requests, and the two transports."""
