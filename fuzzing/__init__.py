"""Coverage-guided fuzzing of every function that takes text or bytes: `make fuzz`; see README.md here."""
