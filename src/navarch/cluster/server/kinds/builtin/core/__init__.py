"""ConfigMaps, Secrets, Namespaces, ServiceAccounts, Events, ResourceQuotas and LimitRanges."""
