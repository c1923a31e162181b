package socket

// MostFiles returns the largest number of files and sockets that this process may open (RLIMIT_NOFILE, whose soft limit
// Go has raised to the hard one); 0: not known.
func MostFiles() int { return mostFiles() }

// BoundByFiles returns the limit, or an eighth of this process's file limit where that is less: unauthenticated clients
// must leave descriptors for the rest.
func BoundByFiles(limit int) int {
	if files := MostFiles(); files > 0 {
		return min(limit, max(files/8, 1))
	}
	return limit
}
