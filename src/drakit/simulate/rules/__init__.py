"""What must hold: after every write, of every choice, of every watch, and when all is quiet again."""
