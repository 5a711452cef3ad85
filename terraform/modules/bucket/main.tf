# The bucket that segments go to. A delete in it is a marker, and only its own lifecycle removes a version.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  root_arn    = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root"
  others      = [for each in var.account_ids : "arn:${data.aws_partition.this.partition}:iam::${each}:root"]
  bucket_arn  = "arn:${data.aws_partition.this.partition}:s3:::${var.name}"
  logs_name   = "${var.name}-logs"
  logs_arn    = "arn:${data.aws_partition.this.partition}:s3:::${local.logs_name}"
  via_s3      = "s3.${data.aws_region.this.name}.amazonaws.com"
  is_shielded = length(var.administrator_arns) > 0
}

# --- the key

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

  dynamic "statement" {
    for_each = length(local.others) > 0 ? [1] : []

    content {
      sid       = "OtherAccountsByWayOfS3"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"]
      resources = ["*"]

      principals {
        type        = "AWS"
        identifiers = local.others
      }

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = [local.via_s3]
      }
    }
  }
}

resource "aws_kms_key" "this" {
  description             = "Seawall: segments in ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = var.tags
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this.key_id
}

# --- the bucket

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV2_AWS_62:Nothing waits for new keys: the metadata topic says what was stored
  #checkov:skip=CKV_AWS_144:A copy in another region is a choice of its own, with its own cost: docs/TERRAFORM.md
  bucket              = var.name
  object_lock_enabled = true
  force_destroy       = false
  tags                = var.tags
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_object_lock_configuration" "this" {
  count  = var.lock_days > 0 ? 1 : 0
  bucket = aws_s3_bucket.this.id

  rule {
    default_retention {
      mode = "GOVERNANCE"
      days = var.lock_days
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    id     = "what-was-deleted-goes-after-the-backup-window"
    status = "Enabled"

    filter {
      prefix = "${var.prefix}/"
    }

    noncurrent_version_expiration {
      noncurrent_days = var.backup_window_days
    }

    # A marker with nothing below it any more.
    expiration {
      expired_object_delete_marker = true
    }
  }

  rule {
    id     = "uploads-that-nobody-finished"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.this.arn
    }
  }
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "OnlyOverTLS"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  statement {
    sid       = "NobodyRemovesAVersion"
    effect    = "Deny"
    actions   = ["s3:DeleteObjectVersion", "s3:BypassGovernanceRetention"]
    resources = ["${local.bucket_arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }
  }

  dynamic "statement" {
    for_each = local.is_shielded ? [1] : []

    content {
      sid    = "OnlyAdministratorsChangeHowLongThingsAreKept"
      effect = "Deny"
      actions = [
        "s3:DeleteBucket",
        "s3:DeleteBucketPolicy",
        "s3:PutBucketObjectLockConfiguration",
        "s3:PutBucketPolicy",
        "s3:PutBucketVersioning",
        "s3:PutLifecycleConfiguration",
      ]
      resources = [local.bucket_arn]

      principals {
        type        = "*"
        identifiers = ["*"]
      }

      condition {
        test     = "ArnNotLike"
        variable = "aws:PrincipalArn"
        values   = concat([local.root_arn], var.administrator_arns)
      }
    }
  }

  dynamic "statement" {
    for_each = length(local.others) > 0 ? [1] : []

    content {
      sid     = "OtherAccountsList"
      actions = ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration"]

      resources = [local.bucket_arn]

      principals {
        type        = "AWS"
        identifiers = local.others
      }
    }
  }

  dynamic "statement" {
    for_each = length(local.others) > 0 ? [1] : []

    content {
      sid = "OtherAccountsSegments"
      actions = [
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:GetObjectLegalHold",
        "s3:GetObjectVersion",
        "s3:PutObject",
        "s3:PutObjectLegalHold",
      ]
      resources = ["${local.bucket_arn}/${var.prefix}/*", "${local.bucket_arn}/${var.prefix}-tables/*"]

      principals {
        type        = "AWS"
        identifiers = local.others
      }
    }
  }
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket.this.id
  policy = data.aws_iam_policy_document.bucket.json

  depends_on = [aws_s3_bucket_public_access_block.this]
}

# --- what is in it, and who asked

resource "aws_s3_bucket_inventory" "this" {
  bucket                   = aws_s3_bucket.this.id
  name                     = "every-version"
  included_object_versions = "All"

  optional_fields = [
    "ChecksumAlgorithm",
    "ETag",
    "EncryptionStatus",
    "LastModifiedDate",
    "ObjectLockLegalHoldStatus",
    "ObjectLockRetainUntilDate",
    "Size",
    "StorageClass",
  ]

  schedule {
    frequency = "Daily"
  }

  destination {
    bucket {
      format     = "Parquet"
      bucket_arn = aws_s3_bucket.logs.arn
      account_id = data.aws_caller_identity.this.account_id
      prefix     = "inventory"
    }
  }

  depends_on = [aws_s3_bucket_policy.logs]
}

resource "aws_s3_bucket_logging" "this" {
  bucket        = aws_s3_bucket.this.id
  target_bucket = aws_s3_bucket.logs.id
  target_prefix = "access/"

  depends_on = [aws_s3_bucket_policy.logs]
}

resource "aws_s3_bucket" "logs" {
  #checkov:skip=CKV2_AWS_62:Nothing waits for logs
  #checkov:skip=CKV_AWS_144:Logs about the other bucket, which is not replicated either
  #checkov:skip=CKV_AWS_145:S3 delivers access logs only to buckets that are encrypted with its own keys
  bucket        = local.logs_name
  force_destroy = false
  tags          = var.tags
}

resource "aws_s3_bucket_versioning" "logs" {
  bucket = aws_s3_bucket.logs.id

  versioning_configuration {
    status = "Enabled"
  }
}

# S3 delivers access logs to buckets with its own keys only.
resource "aws_s3_bucket_server_side_encryption_configuration" "logs" {
  bucket = aws_s3_bucket.logs.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "logs" {
  bucket                  = aws_s3_bucket.logs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "logs" {
  bucket = aws_s3_bucket.logs.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "logs" {
  bucket = aws_s3_bucket.logs.id

  rule {
    id     = "old-logs"
    status = "Enabled"

    filter {}

    expiration {
      days = var.log_days
    }

    noncurrent_version_expiration {
      noncurrent_days = 30
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  depends_on = [aws_s3_bucket_versioning.logs]
}

data "aws_iam_policy_document" "logs" {
  statement {
    sid       = "OnlyOverTLS"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.logs_arn, "${local.logs_arn}/*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  statement {
    sid       = "AccessLogsOfOurBucket"
    actions   = ["s3:PutObject"]
    resources = ["${local.logs_arn}/access/*"]

    principals {
      type        = "Service"
      identifiers = ["logging.s3.amazonaws.com"]
    }

    condition {
      test     = "ArnLike"
      variable = "aws:SourceArn"
      values   = [local.bucket_arn]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.this.account_id]
    }
  }

  statement {
    sid       = "InventoryOfOurBucket"
    actions   = ["s3:PutObject"]
    resources = ["${local.logs_arn}/inventory/*"]

    principals {
      type        = "Service"
      identifiers = ["s3.amazonaws.com"]
    }

    condition {
      test     = "ArnLike"
      variable = "aws:SourceArn"
      values   = [local.bucket_arn]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.this.account_id]
    }
  }
}

resource "aws_s3_bucket_policy" "logs" {
  bucket = aws_s3_bucket.logs.id
  policy = data.aws_iam_policy_document.logs.json

  depends_on = [aws_s3_bucket_public_access_block.logs]
}
