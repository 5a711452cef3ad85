output "name" {
  description = "The bucket: s3.bucket of Seawall's settings."
  value       = aws_s3_bucket.this.id

  # Who uses it finds it as it is to be.
  depends_on = [aws_s3_bucket_versioning.this, aws_s3_bucket_policy.this]
}

output "arn" {
  description = "The bucket's ARN."
  value       = aws_s3_bucket.this.arn
}

output "prefix" {
  description = "Below which keys are Seawall's: s3.prefix."
  value       = var.prefix
}

output "key_arn" {
  description = "The key that everything in the bucket is encrypted with."
  value       = aws_kms_key.this.arn
}

output "logs_name" {
  description = "The bucket with access logs and inventories."
  value       = aws_s3_bucket.logs.id
}
