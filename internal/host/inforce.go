package host

// SettingsInForce are this network namespace's settings that bear on transfers, by their
// names; what cannot be read is absent.
func SettingsInForce() map[string]string { return settingsInForce() }

// ClockSynchronised says whether something disciplines this host's clock; nil: not known.
func ClockSynchronised() *bool { return clockSynchronised() }
