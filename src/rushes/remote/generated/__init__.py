"""Made from proto/ by scripts/make_proto.py; not to be changed by hand."""
