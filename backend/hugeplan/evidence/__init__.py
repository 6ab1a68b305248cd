"""Published results, the backtest, the processor catalogue and the engines."""
