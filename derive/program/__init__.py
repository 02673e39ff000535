"""What is computed, before it is text: values with shapes, symbols that are objects, back ends that print or run."""
