"""`rolebundle inspect`: the pages as a local application that only reads."""
