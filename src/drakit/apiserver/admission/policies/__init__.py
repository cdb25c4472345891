"""ValidatingAdmissionPolicy and its bindings."""
