"""The admission plugins, a module each, under the names that kube-apiserver gives them."""
