"""Published results and the backtest."""
