"""How often a monitor raises false alarms, and how soon a true one; beside MAPIE and river."""
