"""What the samples about text share."""
