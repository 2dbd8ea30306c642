"""Progress for people: a bar of passes, a bar of rows, in terminals and notebooks."""
