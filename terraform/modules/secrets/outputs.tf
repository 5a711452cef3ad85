output "arns" {
  description = "The secrets, by webhook."
  value       = { for name, each in aws_secretsmanager_secret.this : name => each.arn }
}

output "read_policy_arn" {
  description = "The policy that lets a role read them: for whoever runs `seawall audit run` and `seawall alerts deliver`."
  value       = aws_iam_policy.read.arn
}

output "key_arn" {
  description = "The key that they are encrypted with."
  value       = aws_kms_key.this.arn
}
