variable "region" {
  description = "The region of everything."
  type        = string
  default     = "eu-central-1"
}

variable "bucket" {
  description = "The name of the bucket that segments go to."
  type        = string
}

variable "archive_role_arn" {
  description = "The role in the bucket's account that this is applied with; null: the credentials at hand."
  type        = string
  default     = null
}

variable "administrator_arns" {
  description = "Who administers the bucket, in its own account: archive_role_arn should be one of them."
  type        = list(string)
}

variable "operator_arns" {
  description = "Who may act as the operator, in Kafka's account."
  type        = list(string)
}
