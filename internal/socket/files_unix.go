//go:build unix

package socket

import "syscall"

func mostFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	const most = 1 << 30 // also for "unlimited"
	return int(min(uint64(limit.Cur), most))
}
