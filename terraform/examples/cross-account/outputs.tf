output "settings" {
  description = "For seawall.toml: [s3]."
  value = {
    bucket = module.bucket.name
    prefix = module.bucket.prefix
    region = var.region
  }
}

output "role_arns" {
  description = "What agents and operators take on, in Kafka's account."
  value       = module.roles.role_arns
}
