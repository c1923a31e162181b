package socket

// MostFiles is how many files and sockets this process may hold at a time
// (RLIMIT_NOFILE, whose soft limit Go has raised to the hard one); 0: no such bound is
// known.
func MostFiles() int { return mostFiles() }

// BoundByFiles returns the limit, or an eighth of the files that this process may hold where that is
// less: what strangers hold must leave descriptors for the rest.
func BoundByFiles(limit int) int {
	if files := MostFiles(); files > 0 {
		return min(limit, max(files/8, 1))
	}
	return limit
}
