"""What a reader would see, and what ROUGE makes of it: symptoms and text metrics, without any model."""
