# What alerts are signed and sent with. Terraform makes the places, never the values: they would be in its state.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}

locals {
  root_arn = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root"
  allowed  = concat([local.root_arn], var.reader_arns, var.administrator_arns)
}

data "aws_iam_policy_document" "key" {
  #checkov:skip=CKV_AWS_109:A key's own policy is about that key alone, and AWS has it delegate to the account's IAM
  #checkov:skip=CKV_AWS_111:The same: resources of a key's policy are that key
  #checkov:skip=CKV_AWS_356:The same: "*" in a key's policy is that key
  statement {
    sid       = "TheAccountsOwnPolicies"
    actions   = ["kms:*"]
    resources = ["*"] # of a key's own policy: this key

    principals {
      type        = "AWS"
      identifiers = [local.root_arn]
    }
  }
}

resource "aws_kms_key" "this" {
  description             = "Seawall: secrets of alerts"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = var.tags
}

resource "aws_secretsmanager_secret" "this" {
  #checkov:skip=CKV2_AWS_57:A webhook's secret changes at its receiver, by hand; two are accepted while it does (docs/ALERTS.md)
  for_each = var.webhooks

  name                    = "${var.name}/${each.key}"
  description             = "Seawall: what alerts to ${each.key} are signed or sent with"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = 30
  tags                    = var.tags
}

data "aws_iam_policy_document" "secret" {
  statement {
    sid       = "OnlyReadersRead"
    effect    = "Deny"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = ["*"] # of a secret's own policy: this secret

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "ArnNotLike"
      variable = "aws:PrincipalArn"
      values   = local.allowed
    }
  }
}

resource "aws_secretsmanager_secret_policy" "this" {
  for_each = var.webhooks

  secret_arn          = aws_secretsmanager_secret.this[each.key].arn
  policy              = data.aws_iam_policy_document.secret.json
  block_public_policy = true
}

data "aws_iam_policy_document" "read" {
  statement {
    sid       = "Secrets"
    actions   = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]
    resources = length(var.webhooks) > 0 ? [for each in aws_secretsmanager_secret.this : each.arn] : ["arn:${data.aws_partition.this.partition}:secretsmanager:::none"]
  }

  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt"]
    resources = [aws_kms_key.this.arn]
  }
}

resource "aws_iam_policy" "read" {
  name        = "${var.name}-alerts-secrets"
  description = "Seawall: read what alerts are signed and sent with"
  policy      = data.aws_iam_policy_document.read.json
  tags        = var.tags
}
