"""One file per rule; :mod:`traceanalyzer.doctor.registry` lists them."""
