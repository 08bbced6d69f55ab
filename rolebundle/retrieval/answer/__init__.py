"""What an answer says besides its passages: why each is there, warnings, and what to do next."""
