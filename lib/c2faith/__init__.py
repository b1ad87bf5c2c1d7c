"""C2-Faith: a benchmark of LLM judges of chain-of-thought faithfulness."""
