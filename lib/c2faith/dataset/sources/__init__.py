"""Where chains come from: one module a source, which turns records into chains, and nothing else.

A new source is its name in `chains.SOURCES` and a module of two functions: ``inputs(path)`` names the files to
read, in order; ``read(files, request, dropped)`` yields chains, and natural items where asked for.
"""
