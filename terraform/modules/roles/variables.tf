variable "name" {
  description = "What the policies and roles are called, with -uploader and so on behind it."
  type        = string
  default     = "seawall"
}

variable "bucket_arn" {
  description = "The bucket's ARN."
  type        = string
}

variable "prefix" {
  description = "Below which keys are Seawall's: s3.prefix, without a slash at the end."
  type        = string
  default     = "seawall"
}

variable "key_arn" {
  description = "The key that the bucket is encrypted with."
  type        = string
}

variable "trusted" {
  description = "Who may take on which role: by services (ec2.amazonaws.com), by other roles' ARNs, or by an OpenID Connect provider with the subjects that are meant (EKS). A role that nobody is named for is not made; its policies are. Roles: agent, auditor, operator."
  type = map(object({
    services      = optional(list(string), [])
    principals    = optional(list(string), [])
    oidc_provider = optional(string)
    oidc_subjects = optional(list(string), [])
  }))
  default = {}

  validation {
    condition     = alltrue([for role in keys(var.trusted) : contains(["agent", "auditor", "operator"], role)])
    error_message = "There are agent, auditor and operator."
  }
}

variable "boundary_arn" {
  description = "A permissions boundary for the roles; none if null."
  type        = string
  default     = null
}

variable "tags" {
  description = "On everything."
  type        = map(string)
  default     = {}
}
