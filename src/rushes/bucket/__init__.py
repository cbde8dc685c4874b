"""What every part that keeps something in a bucket shares: where it is, how it is reached, conditional writes."""
