"""The studio: a local page on which the gate and the studies can be seen at work. Python computes, the page draws."""
