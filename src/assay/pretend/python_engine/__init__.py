"""The Python engine: a tensor subclass with modes, for machines without a C++ compiler.

``engine`` is the context, ``tensor`` the subclass, ``operators`` runs torch's operators by the rules of the device,
``indexing`` and ``functions`` do what torch's dispatcher does not show to a subclass, and ``patches`` holds the
functions of torch that are replaced.
"""
