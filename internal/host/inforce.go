package host

// SettingsInForce returns this network namespace's settings that affect transfers, by name, without unreadable ones.
func SettingsInForce() map[string]string { return settingsInForce() }

// ClockSynchronised reports whether this host's clock is synchronised; nil is unknown.
func ClockSynchronised() *bool { return clockSynchronised() }
