package sockdiag

// Follower follows the TCP sockets of one network namespace. Dump and Look read those that are open, Ends reports
// those that end. It is not safe for use by several goroutines.
type Follower struct {
	*Conn
	Ends *Ends
}

const endsRoom = 8 << 20 // bytes: a burst of 6,500 ends between two calls of Ends.Take

// Follow opens a Follower in the network namespace behind a path such as /proc/PID/ns/net, which needs CAP_SYS_ADMIN;
// "" is the namespace of this thread. A namespace exists as long as a Follower of it is open.
func Follow(namespace string) (f *Follower, err error) {
	if namespace != "" {
		err = InNamespace(namespace, func() error { f, err = Follow(""); return err })
		return f, err
	}
	c, err := Open()
	if err != nil {
		return nil, err
	}
	ends, err := OpenEnds(endsRoom)
	if err != nil {
		_ = c.Close() // nothing was asked
		return nil, err
	}
	return &Follower{c, ends}, nil
}

// Close ends both.
func (f *Follower) Close() {
	_ = f.Conn.Close() // both were only read from
	_ = f.Ends.Close()
}
