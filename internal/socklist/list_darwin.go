package socklist

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// List reads the connections.
type List struct{ kept kept[uint64, wrapped] }

// Open makes one.
func Open(Options) (*List, error) { return &List{}, nil }

// Read calls each with every wanted connection. Its argument is valid only during the call.
func (l *List) Read(want Want, each func(*Socket)) (untold int, err error) {
	const name = "net.inet.tcp.pcblist_n"
	list, err := unix.SysctlRaw(name)
	for tries := 1; errors.Is(err, unix.ENOMEM) && tries < 8; tries++ { // it grew after its size was asked for
		list, err = unix.SysctlRaw(name)
	}
	if err != nil {
		return 0, fmt.Errorf("sysctl %s: %w", name, err)
	}
	l.kept.begin()
	defer l.kept.end()
	if err := parse(list, func(p *pcb) {
		if want(p.Local, p.Remote) {
			p.unwrap(l.kept.get(p.Key))
			each(&p.Socket)
		}
	}); err != nil {
		return 0, fmt.Errorf("sysctl %s: %w", name, err)
	}
	return 0, nil
}

// Retransmissions reports whether this system counts them: it does not.
func (*List) Retransmissions() bool { return false }

// Close ends it.
func (*List) Close() error { return nil }

// Program is the name of a process, "" where there is none.
func Program(pid int) string {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(p.Proc.P_comm[:])
}
