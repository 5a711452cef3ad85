variable "name" {
  description = "The bucket's name. Its log bucket is called the same with -logs behind it."
  type        = string
}

variable "prefix" {
  description = "Below which keys are Seawall's: s3.prefix of its settings, without a slash at the end."
  type        = string
  default     = "seawall"

  validation {
    condition     = can(regex("^[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*$", var.prefix))
    error_message = "Words of A-Z a-z 0-9 ! _ . * ' ( ) - with single slashes between, none at either end."
  }
}

variable "backup_window_days" {
  description = "For how many days what was deleted can be put back. The lifecycle alone removes a version, and after that time. Not less than backup_window_days of any topic's policy."
  type        = number
  default     = 30

  validation {
    condition     = var.backup_window_days >= 7 && floor(var.backup_window_days) == var.backup_window_days
    error_message = "A whole number of days, at least 7."
  }
}

variable "lock_days" {
  description = "For how many days nobody can remove a version from when it was written, by Object Lock in governance mode. 0: no default retention; legal holds work all the same."
  type        = number
  default     = 7

  validation {
    condition     = var.lock_days >= 0 && floor(var.lock_days) == var.lock_days
    error_message = "A whole number of days, or 0."
  }
}

variable "account_ids" {
  description = "Other accounts whose roles use the bucket, as far as those roles' own policies say (cross-account)."
  type        = list(string)
  default     = []
}

variable "administrator_arns" {
  description = "Who may change the lifecycle, the lock and the policy, besides the account's root. Nobody else, whatever they are allowed elsewhere; not even who applies this, unless they are named."
  type        = list(string)
  default     = []
}

variable "log_days" {
  description = "How long access logs and inventories are kept."
  type        = number
  default     = 365
}

variable "tags" {
  description = "On everything."
  type        = map(string)
  default     = {}
}
