"""Long runs with seeds that print figures; the test suite runs small samples of the same code."""
