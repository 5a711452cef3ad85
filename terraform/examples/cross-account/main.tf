# The bucket in an account of its own, which nobody who runs Kafka administers; agents and operators in another.
# Whoever breaks into the one cannot shorten what the other keeps.

provider "aws" {
  alias  = "archive"
  region = var.region

  dynamic "assume_role" {
    for_each = var.archive_role_arn != null ? [1] : []

    content {
      role_arn = var.archive_role_arn
    }
  }
}

provider "aws" {
  alias  = "kafka"
  region = var.region
}

data "aws_caller_identity" "kafka" {
  provider = aws.kafka
}

module "bucket" {
  source    = "../../modules/bucket"
  providers = { aws = aws.archive }

  name               = var.bucket
  backup_window_days = 90
  lock_days          = 30
  account_ids        = [data.aws_caller_identity.kafka.account_id]
  administrator_arns = var.administrator_arns
  tags               = local.tags
}

module "roles" {
  source    = "../../modules/roles"
  providers = { aws = aws.kafka }

  bucket_arn = module.bucket.arn
  prefix     = module.bucket.prefix
  key_arn    = module.bucket.key_arn
  trusted = {
    agent    = { services = ["ec2.amazonaws.com"] }
    operator = { principals = var.operator_arns }
  }
  tags = local.tags
}

locals {
  tags = { application = "seawall" }
}
