"""One check call over HTTP: the request and its signature, the guard, the answer."""
