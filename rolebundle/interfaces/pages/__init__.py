"""Answers, roles and corpora as HTML pages: Jinja2 templates, one style sheet, and no script."""
