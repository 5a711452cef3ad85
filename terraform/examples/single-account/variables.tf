variable "region" {
  description = "The region of everything."
  type        = string
  default     = "eu-central-1"
}

variable "bucket" {
  description = "The name of the bucket that segments go to."
  type        = string
}

variable "packages" {
  description = "A bucket of yours with what the jobs run."
  type        = string
}

variable "submit_parameters" {
  description = "What `seawall spark package DIR --at s3://<packages>/seawall --json` says under that name."
  type        = string
}

variable "operator_arns" {
  description = "Who may act as the operator: restores, holds, clean-ups."
  type        = list(string)
}

variable "subnet_ids" {
  description = "Subnets from which Kafka is reached."
  type        = list(string)
  default     = []
}

variable "security_group_ids" {
  description = "Of the jobs' workers."
  type        = list(string)
  default     = []
}

variable "release" {
  description = "The EMR release whose Spark the jobs run on: one of 4.1."
  type        = string
}
