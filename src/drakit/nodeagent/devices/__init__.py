"""Device plugins (v1beta1), beside DRA: so that a cluster can migrate node by node."""
