"""The ground floor: values and rules that every other room stands on, and that know nothing of DRA.

Import the modules: `base.quantity`, `base.names`, `base.fields`, … This room imports no other.
"""
