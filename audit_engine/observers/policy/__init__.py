"""What was declared: each change of the policy that is in force, as evidence."""
