package host

// trusted returns nil: it does not read Windows' access lists.
func trusted(string) error { return nil }
