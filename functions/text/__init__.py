"""Code that several samples about text use."""
