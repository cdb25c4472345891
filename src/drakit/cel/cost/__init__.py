"""What an expression costs: at worst, and in one evaluation."""
