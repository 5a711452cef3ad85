"""The shell around Seawall's packages: command line, settings, Java, local servers. Holds no domain logic."""
