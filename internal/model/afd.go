package model

// AFD is how the socket layer of Windows NT 4 to XP (afd.sys) buffers blocking writes,
// fitted to published throughput over write sizes: with a quota of B bytes
// (SO_SNDBUF, DefaultSendWindow; 8192 by default) about B bytes are outstanding (written
// and not yet acknowledged) for writes up to B, and about B + S for larger writes of S
// bytes.
type AFD struct {
	Quota int // bytes
}

// DefaultAFDQuota is AFD's DefaultSendWindow on hosts with more than 19 MB of memory.
const DefaultAFDQuota = 8192

// Outstanding is how many bytes writes of one size keep unacknowledged.
func (a AFD) Outstanding(write int) int {
	if write <= 0 {
		return 0
	}
	if write > a.Quota {
		return a.Quota + write
	}
	return a.Quota
}
