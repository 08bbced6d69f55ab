"""Why an answer is as it is, and how it differs from another one."""
