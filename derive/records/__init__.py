"""The frozen records between stages. Each prints itself as text and as LaTeX."""
