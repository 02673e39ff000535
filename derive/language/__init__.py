"""The declaration language: sectors, disorder, fields, equations and probed matrices."""
