"""Who may come in, how often they may guess, and what they did."""
