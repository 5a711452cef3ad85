output "settings" {
  description = "For seawall.toml: [s3]."
  value = {
    bucket = module.bucket.name
    prefix = module.bucket.prefix
    region = var.region
  }
}

output "role_arns" {
  description = "What agents and operators take on."
  value       = module.roles.role_arns
}

output "application_id" {
  description = "The audit's application."
  value       = module.audit.application_id
}
