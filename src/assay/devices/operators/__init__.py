"""What torch's operators do on each kind of device: which it has, where the device is waited for, what differs.

``overloads`` is torch's own table of operators, ``rules`` what each does on a device (facts with their sources in
``devices/known/operators_*.toml``), ``conditions`` the arguments for which a rule applies, ``releases`` what older
releases of torch lacked, and ``support`` whether a device can run an operator for quantized weights.
"""
