# Everything in one account: the bucket, agents on EC2, the daily audit, and where its alerts' secrets are kept.

provider "aws" {
  region = var.region
}

module "bucket" {
  source = "../../modules/bucket"

  name               = var.bucket
  backup_window_days = 30
  tags               = local.tags
}

module "roles" {
  source = "../../modules/roles"

  bucket_arn = module.bucket.arn
  prefix     = module.bucket.prefix
  key_arn    = module.bucket.key_arn
  trusted = {
    agent    = { services = ["ec2.amazonaws.com"] }
    operator = { principals = var.operator_arns }
  }
  tags = local.tags
}

module "secrets" {
  source = "../../modules/secrets"

  webhooks    = ["ops"]
  reader_arns = [module.audit.job_role_arn]
  tags        = local.tags
}

module "audit" {
  source = "../../modules/audit"

  release           = var.release
  entry_point       = "s3://${var.packages}/seawall/entry.py"
  submit_parameters = var.submit_parameters
  package_arns      = ["arn:aws:s3:::${var.packages}/seawall/*"]
  policy_arns = {
    auditor = module.roles.policy_arns["auditor"]
    holds   = module.roles.policy_arns["restorer"]
    secrets = module.secrets.read_policy_arn
  }
  subnet_ids         = var.subnet_ids
  security_group_ids = var.security_group_ids
  tags               = local.tags
}

locals {
  tags = { application = "seawall" }
}
