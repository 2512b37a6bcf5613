"""The paper: evidence, logic and edit as pure functions over arrays, with the calibration and the choices they take."""
