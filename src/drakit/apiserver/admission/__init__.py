"""Between a request that is allowed and the store: plugins, policies, webhooks and the rules of every kind."""
