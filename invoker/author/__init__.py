"""What an author wrote, read: the decorator, annotations, parameters, and where functions are loaded from."""
