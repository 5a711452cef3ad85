# Ingest, the daily audit and upkeep, on EMR Serverless: nothing runs between two of them.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  account = data.aws_caller_identity.this.account_id
  part    = data.aws_partition.this.partition
  region  = data.aws_region.this.name
}

resource "aws_emrserverless_application" "this" {
  name          = var.name
  release_label = var.release
  type          = "SPARK"
  tags          = var.tags

  dynamic "image_configuration" {
    for_each = var.image_uri != null ? [1] : []

    content {
      image_uri = var.image_uri
    }
  }

  maximum_capacity {
    cpu    = var.maximum.cpu
    memory = var.maximum.memory
    disk   = var.maximum.disk
  }

  auto_start_configuration {
    enabled = true
  }

  auto_stop_configuration {
    enabled              = true
    idle_timeout_minutes = 15
  }

  dynamic "network_configuration" {
    for_each = length(var.subnet_ids) > 0 ? [1] : []

    content {
      subnet_ids         = var.subnet_ids
      security_group_ids = var.security_group_ids
    }
  }
}

# --- logs

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
      identifiers = ["arn:${local.part}:iam::${local.account}:root"]
    }
  }

  statement {
    sid       = "LogsOfTheseJobs"
    actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
    resources = ["*"]

    principals {
      type        = "Service"
      identifiers = ["logs.${local.region}.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "kms:EncryptionContext:aws:logs:arn"
      values   = ["arn:${local.part}:logs:${local.region}:${local.account}:log-group:/seawall/${var.name}"]
    }
  }
}

resource "aws_kms_key" "logs" {
  description             = "Seawall: logs of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = var.tags
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/seawall/${var.name}"
  retention_in_days = var.log_days
  kms_key_id        = aws_kms_key.logs.arn
  tags              = var.tags
}

# --- what the jobs may

data "aws_iam_policy_document" "job_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["emr-serverless.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "job" {
  name               = "${var.name}-audit-job"
  description        = "Seawall: ingest, audit and upkeep"
  assume_role_policy = data.aws_iam_policy_document.job_trust.json
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "job" {
  for_each = var.policy_arns

  role       = aws_iam_role.job.name
  policy_arn = each.value
}

data "aws_iam_policy_document" "job" {
  statement {
    sid       = "Package"
    actions   = ["s3:GetObject"]
    resources = var.package_arns
  }

  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }

  # EMR Serverless asks whether the group is there; that has no narrower resource.
  statement {
    sid       = "FindTheLogGroup"
    actions   = ["logs:DescribeLogGroups"]
    resources = ["arn:${local.part}:logs:${local.region}:${local.account}:log-group:*"]
  }

  statement {
    sid       = "LogsKey"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [aws_kms_key.logs.arn]
  }
}

resource "aws_iam_role_policy" "job" {
  name   = "package-and-logs"
  role   = aws_iam_role.job.id
  policy = data.aws_iam_policy_document.job.json
}

# --- when they run

data "aws_iam_policy_document" "schedule_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "schedule" {
  name               = "${var.name}-audit-schedule"
  description        = "Seawall: starts the jobs"
  assume_role_policy = data.aws_iam_policy_document.schedule_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "schedule" {
  statement {
    sid       = "StartJobs"
    actions   = ["emr-serverless:StartJobRun"]
    resources = [aws_emrserverless_application.this.arn]
  }

  statement {
    sid       = "AsTheJobsRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.job.arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["emr-serverless.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy" "schedule" {
  name   = "start-jobs"
  role   = aws_iam_role.schedule.id
  policy = data.aws_iam_policy_document.schedule.json
}

resource "aws_scheduler_schedule_group" "this" {
  name = var.name
  tags = var.tags
}

resource "aws_kms_key" "schedules" {
  description             = "Seawall: schedules of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.schedules_key.json
  tags                    = var.tags
}

data "aws_iam_policy_document" "schedules_key" {
  #checkov:skip=CKV_AWS_109:A key's own policy is about that key alone, and AWS has it delegate to the account's IAM
  #checkov:skip=CKV_AWS_111:The same: resources of a key's policy are that key
  #checkov:skip=CKV_AWS_356:The same: "*" in a key's policy is that key
  statement {
    sid       = "TheAccountsOwnPolicies"
    actions   = ["kms:*"]
    resources = ["*"] # of a key's own policy: this key

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.part}:iam::${local.account}:root"]
    }
  }

  statement {
    sid       = "TheSchedulerReadsItsInputs"
    actions   = ["kms:Decrypt"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.schedule.arn]
    }
  }
}

resource "aws_scheduler_schedule" "this" {
  for_each = var.schedules

  name                         = "${var.name}-${each.key}"
  group_name                   = aws_scheduler_schedule_group.this.name
  description                  = "seawall ${join(" ", each.value.arguments)}"
  schedule_expression          = each.value.expression
  schedule_expression_timezone = "UTC"
  kms_key_arn                  = aws_kms_key.schedules.arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:${local.part}:scheduler:::aws-sdk:emrserverless:startJobRun"
    role_arn = aws_iam_role.schedule.arn

    # Each start has a token of its own, by the moment it is for: one that is delivered twice starts one job.
    input = jsonencode({
      ApplicationId           = aws_emrserverless_application.this.id
      ClientToken             = "<aws.scheduler.execution-id>"
      ExecutionRoleArn        = aws_iam_role.job.arn
      ExecutionTimeoutMinutes = each.value.minutes
      Name                    = "${var.name}-${each.key}"
      JobDriver = {
        SparkSubmit = merge({
          EntryPoint          = var.entry_point
          EntryPointArguments = each.value.arguments
        }, var.submit_parameters == "" ? {} : { SparkSubmitParameters = var.submit_parameters })
      }
      ConfigurationOverrides = {
        MonitoringConfiguration = {
          CloudWatchLoggingConfiguration = {
            Enabled             = true
            LogGroupName        = aws_cloudwatch_log_group.this.name
            LogStreamNamePrefix = each.key
            EncryptionKeyArn    = aws_kms_key.logs.arn
          }
        }
      }
    })

    retry_policy {
      maximum_event_age_in_seconds = 3600
      maximum_retry_attempts       = 3
    }
  }
}

# --- when one is missing

# `seawall audit run` ends with a line such as "run 41 as of 2026-01-31T06:00:00+00:00: 20117 events, 48 logs".
resource "aws_cloudwatch_log_metric_filter" "runs" {
  name           = "${var.name}-finished-runs"
  log_group_name = aws_cloudwatch_log_group.this.name
  pattern        = "\"run \" \" as of \" \" events, \" \" logs\""

  metric_transformation {
    name      = "FinishedRuns"
    namespace = "Seawall/${var.name}"
    value     = "1"
  }
}

# An alarm looks back a week at most: an hour each, of which not one may have a run.
resource "aws_cloudwatch_metric_alarm" "missing" {
  alarm_name          = "${var.name}-audit-run-missing"
  alarm_description   = "No audit run was finished for ${var.missing_after_hours} hours: yesterday's PASS is not today's. Look at the jobs of EMR Serverless application ${aws_emrserverless_application.this.id}, then at `seawall audit status`."
  namespace           = "Seawall/${var.name}"
  metric_name         = "FinishedRuns"
  statistic           = "Sum"
  period              = 3600
  evaluation_periods  = var.missing_after_hours
  datapoints_to_alarm = var.missing_after_hours
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
