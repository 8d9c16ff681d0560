"""The processes behind `navarch run`: one loads and runs the operator, one watches its sources and shows its state."""
