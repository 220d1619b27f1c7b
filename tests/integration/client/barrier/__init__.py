"""The barrier: a check during a local transaction never decides against it."""
