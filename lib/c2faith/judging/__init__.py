"""Items → prompts → replies → verdicts."""
