"""`make demo`: one picture and one table that show what compression is for."""
