"""The quadrotor study: two insufficient controllers, composed, against standard baselines."""
