"""What the owner of a corpus may do: one class for each thing that is maintained."""

from rolebundle.admin.admin import Admin as Admin
