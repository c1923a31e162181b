package host

// trusted asks nothing: who may write a directory stands in access lists here, which are
// not read.
func trusted(string) error { return nil }
