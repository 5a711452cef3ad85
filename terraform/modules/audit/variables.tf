variable "name" {
  description = "What everything here is called, or begins with."
  type        = string
  default     = "seawall"
}

variable "release" {
  description = "The EMR release, as EMR Serverless labels it: one whose Spark is of 4.1, or image_uri has it."
  type        = string
}

variable "image_uri" {
  description = "A custom image of EMR Serverless with Seawall in it; none if null, and then entry_point brings what it needs."
  type        = string
  default     = null
}

variable "entry_point" {
  description = "The script that spark-submit is given, in a bucket that the job's role reads: it calls Seawall with the arguments of each step."
  type        = string
}

variable "submit_parameters" {
  description = "What spark-submit is given besides, such as --archives and --conf: the same for each step."
  type        = string
  default     = ""
}

variable "package_arns" {
  description = "Objects, as ARNs with a * perhaps, that hold the script and what it needs: the job's role reads them."
  type        = list(string)
}

variable "policy_arns" {
  description = "Policies of the job's role: the auditor's, and the one that reads the alerts' secrets."
  type        = map(string)
}

variable "schedules" {
  description = "When each step runs, as EventBridge Scheduler says it, in UTC, and with which arguments of seawall. No step of a name runs beside itself: Seawall's tables refuse a second writer."
  type = map(object({
    expression = string
    arguments  = list(string)
    minutes    = optional(number, 180)
  }))
  default = {
    ingest   = { expression = "rate(15 minutes)", arguments = ["audit", "ingest"], minutes = 14 }
    audit    = { expression = "cron(0 6 * * ? *)", arguments = ["audit", "run"] }
    maintain = { expression = "cron(0 3 * * ? *)", arguments = ["audit", "maintain"] }
  }
}

variable "subnet_ids" {
  description = "Where the job's workers are, so that they reach Kafka. None: without a network of yours, which reaches no cluster."
  type        = list(string)
  default     = []
}

variable "security_group_ids" {
  description = "Of the workers."
  type        = list(string)
  default     = []
}

variable "maximum" {
  description = "The most that all jobs together use at once."
  type = object({
    cpu    = optional(string, "32 vCPU")
    memory = optional(string, "128 GB")
    disk   = optional(string, "400 GB")
  })
  default = {}
}

variable "log_days" {
  description = "How long the jobs' logs are kept."
  type        = number
  default     = 365
}

variable "missing_after_hours" {
  description = "After how many hours without a finished run the alarm goes off. Longer than the time from one run to the next."
  type        = number
  default     = 26

  validation {
    condition     = var.missing_after_hours >= 1 && var.missing_after_hours <= 168 && floor(var.missing_after_hours) == var.missing_after_hours
    error_message = "A whole number from 1 to 168."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that hear of a missing run, and of its return."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "On everything."
  type        = map(string)
  default     = {}
}
