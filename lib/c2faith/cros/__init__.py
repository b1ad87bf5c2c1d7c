"""CRoS, Causality-and-Coverage Reward over Steps: exact rewards, the hazard policy, and judges trained on both."""
