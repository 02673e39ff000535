"""The frozen records that flow between stages. Each prints itself as text and as LaTeX."""
