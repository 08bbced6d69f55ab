"""What people and agents add: marks, decisions, remembered facts."""
