"""The paper's theorems, measured: claims T1 to T12."""
