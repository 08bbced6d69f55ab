"""What the owner of a corpus may do: ingest it, and one function for each thing to maintain."""

from rolebundle.admin.admin import Admin as Admin
