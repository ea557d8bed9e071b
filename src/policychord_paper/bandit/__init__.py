"""The bandit study: human choices between arms, explained trial by trial."""
