"""The paper's studies: what they set, simulate, measure, draw and claim."""
