"""PodSecurity: the Pod Security Standards, as the labels of a namespace ask for them."""
