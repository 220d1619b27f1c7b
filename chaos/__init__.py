"""The crash harness: run the whole service, break it on purpose, and judge what is left."""
