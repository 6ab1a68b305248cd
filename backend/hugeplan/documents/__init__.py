"""Documents that come from outside: the agent's report and tlbbench's run.

Each is one pydantic model, which is its schema and says exactly what is wrong with a document. :mod:`.decoding`
compiles the same model for msgspec, which reads a right document in one pass.
"""
