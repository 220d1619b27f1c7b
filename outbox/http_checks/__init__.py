"""One check call over HTTP: what is asked, how it is signed and guarded, what an answer means."""
