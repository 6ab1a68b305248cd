"""The model against evidence: the backtest of published results, and how often each page size wins over runs."""
