output "policy_arns" {
  description = "By what is done: uploader, janitor, auditor, restorer. To be attached to roles of your own."
  value       = { for name, each in aws_iam_policy.does : name => each.arn }
}

output "role_arns" {
  description = "The roles that somebody was named for: agent, auditor, operator."
  value       = { for name, each in aws_iam_role.this : name => each.arn }
}

output "role_names" {
  description = "The same, by name."
  value       = { for name, each in aws_iam_role.this : name => each.name }
}
