package socket

// MostFiles is how many files and sockets this process may hold at a time
// (RLIMIT_NOFILE, whose soft limit Go has raised to the hard one); 0: no such bound is
// known.
func MostFiles() int { return mostFiles() }
