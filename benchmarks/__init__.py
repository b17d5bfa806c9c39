"""What `reversi bench` measures: one module a subject, plain functions that return numbers."""
