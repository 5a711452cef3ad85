# Least rights, one policy for each thing that is done:
#
#   uploader   puts new keys, and gives up its own unfinished uploads
#   janitor    adds delete markers, which a version outlives
#   auditor    reads and lists; writes the tables of evidence under a prefix of their own
#   restorer   reads versions, puts them back, and places legal holds
#
# None removes a version, shortens a lock, or changes the lifecycle: each says so besides, so that a mistake in
# another policy does not grant it. An agent uploads and cleans up behind itself; an operator does the rest.

data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  segments = "${var.bucket_arn}/${var.prefix}/*"
  tables   = "${var.bucket_arn}/${var.prefix}-tables/*"
  via_s3   = "s3.${data.aws_region.this.name}.amazonaws.com"

  does = {
    uploader = {
      bucket  = ["s3:GetBucketVersioning"]
      lists   = ["s3:ListBucket"]
      objects = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"]
      tables  = []
      key     = ["kms:Decrypt", "kms:GenerateDataKey"]
    }
    janitor = {
      bucket  = ["s3:GetBucketVersioning"]
      lists   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
      objects = ["s3:AbortMultipartUpload", "s3:DeleteObject"]
      tables  = []
      key     = []
    }
    auditor = {
      bucket  = ["s3:GetBucketObjectLockConfiguration", "s3:GetBucketVersioning"]
      lists   = ["s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:ListBucketVersions"]
      objects = ["s3:GetObject", "s3:GetObjectLegalHold", "s3:GetObjectVersion"]
      tables  = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
      key     = ["kms:Decrypt", "kms:GenerateDataKey"]
    }
    restorer = {
      bucket  = ["s3:GetBucketObjectLockConfiguration", "s3:GetBucketVersioning"]
      lists   = ["s3:ListBucket", "s3:ListBucketVersions"]
      objects = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:GetObjectLegalHold", "s3:GetObjectVersion", "s3:PutObject", "s3:PutObjectLegalHold"]
      tables  = []
      key     = ["kms:Decrypt", "kms:GenerateDataKey"]
    }
  }

  roles = {
    agent    = ["uploader", "janitor"]
    auditor  = ["auditor"]
    operator = ["auditor", "janitor", "restorer"]
  }

  attached = merge([
    for role, policies in local.roles : {
      for policy in policies : "${role}-${policy}" => { role = role, policy = policy }
    } if contains(keys(var.trusted), role)
  ]...)
}

data "aws_iam_policy_document" "does" {
  for_each = local.does

  statement {
    sid       = "Bucket"
    actions   = each.value.bucket
    resources = [var.bucket_arn]
  }

  # Without a prefix, as HeadObject asks: what is not there is then said to be missing, not refused.
  statement {
    sid       = "Listings"
    actions   = each.value.lists
    resources = [var.bucket_arn]

    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = concat(["${var.prefix}/*"], length(each.value.tables) > 0 ? ["${var.prefix}-tables/*"] : [])
    }
  }

  statement {
    sid       = "Segments"
    actions   = each.value.objects
    resources = [local.segments]
  }

  dynamic "statement" {
    for_each = length(each.value.tables) > 0 ? [1] : []

    content {
      sid       = "Tables"
      actions   = each.value.tables
      resources = [local.tables]
    }
  }

  dynamic "statement" {
    for_each = length(each.value.key) > 0 ? [1] : []

    content {
      sid       = "Key"
      actions   = each.value.key
      resources = [var.key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = [local.via_s3]
      }
    }
  }

  statement {
    sid    = "Never"
    effect = "Deny"
    actions = [
      "s3:BypassGovernanceRetention",
      "s3:DeleteBucket",
      "s3:DeleteBucketPolicy",
      "s3:DeleteObjectVersion",
      "s3:PutBucketObjectLockConfiguration",
      "s3:PutBucketPolicy",
      "s3:PutBucketVersioning",
      "s3:PutLifecycleConfiguration",
      "s3:PutObjectRetention",
    ]
    resources = [var.bucket_arn, "${var.bucket_arn}/*"]
  }
}

resource "aws_iam_policy" "does" {
  for_each = local.does

  name        = "${var.name}-${each.key}"
  description = "Seawall: ${each.key}, below ${var.prefix}/"
  policy      = data.aws_iam_policy_document.does[each.key].json
  tags        = var.tags
}

data "aws_iam_policy_document" "trust" {
  for_each = var.trusted

  dynamic "statement" {
    for_each = length(each.value.services) > 0 ? [1] : []

    content {
      actions = ["sts:AssumeRole"]

      principals {
        type        = "Service"
        identifiers = each.value.services
      }
    }
  }

  dynamic "statement" {
    for_each = length(each.value.principals) > 0 ? [1] : []

    content {
      actions = ["sts:AssumeRole"]

      principals {
        type        = "AWS"
        identifiers = each.value.principals
      }
    }
  }

  dynamic "statement" {
    for_each = each.value.oidc_provider != null ? [1] : []

    content {
      actions = ["sts:AssumeRoleWithWebIdentity"]

      principals {
        type        = "Federated"
        identifiers = [each.value.oidc_provider]
      }

      condition {
        test     = "StringEquals"
        variable = "${element(split("oidc-provider/", each.value.oidc_provider), 1)}:sub"
        values   = each.value.oidc_subjects
      }

      condition {
        test     = "StringEquals"
        variable = "${element(split("oidc-provider/", each.value.oidc_provider), 1)}:aud"
        values   = ["sts.amazonaws.com"]
      }
    }
  }
}

resource "aws_iam_role" "this" {
  for_each = var.trusted

  name                 = "${var.name}-${each.key}"
  description          = "Seawall: ${join(", ", local.roles[each.key])}"
  assume_role_policy   = data.aws_iam_policy_document.trust[each.key].json
  permissions_boundary = var.boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each = local.attached

  role       = aws_iam_role.this[each.value.role].name
  policy_arn = aws_iam_policy.does[each.value.policy].arn
}
