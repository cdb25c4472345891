"""Where a server is and who we are to it: kubeconfig, in-cluster account, credentials."""
