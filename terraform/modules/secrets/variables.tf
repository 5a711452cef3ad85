variable "name" {
  description = "What the secrets are called, with a slash and each one's own name behind it."
  type        = string
  default     = "seawall"
}

variable "webhooks" {
  description = "A secret for each: the name by which alerts.endpoints refers to it. Values are not Terraform's: put them in with `aws secretsmanager put-secret-value`, so that no state file has them."
  type        = set(string)
  default     = []
}

variable "reader_arns" {
  description = "Roles that may read them: who delivers alerts. Nobody else may, whatever they are allowed elsewhere in the account, but its administrators' own roles, if named in administrator_arns."
  type        = list(string)
  default     = []
}

variable "administrator_arns" {
  description = "Who puts values in, and may read them."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "On everything."
  type        = map(string)
  default     = {}
}
