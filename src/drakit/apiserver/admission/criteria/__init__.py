"""Which requests a policy or a webhook is about, and the expressions that decide it."""
