"""The judge, once more over all evidence."""
