output "application_id" {
  description = "The EMR Serverless application."
  value       = aws_emrserverless_application.this.id
}

output "job_role_arn" {
  description = "The jobs' role: a reader of the alerts' secrets, and whom Kafka knows by IAM, where it is MSK."
  value       = aws_iam_role.job.arn
}

output "log_group" {
  description = "Where the jobs' logs are."
  value       = aws_cloudwatch_log_group.this.name
}

output "alarm_arn" {
  description = "The alarm that goes off when a run is missing."
  value       = aws_cloudwatch_metric_alarm.missing.arn
}
