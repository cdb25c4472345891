"""Extended resources that devices provide: a pod names a resource, and gets a claim that it never wrote."""
