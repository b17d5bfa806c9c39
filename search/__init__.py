"""The engine room: one alpha-beta for every evaluator, an exact endgame solver, and the agents made of them."""
