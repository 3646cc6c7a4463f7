"""What figures show without any trial, entered by name with one decorator: (options, generator) in, a table out."""
