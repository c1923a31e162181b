package model

// AFD models how the socket layer of Windows NT 4 to XP (afd.sys) buffers blocking writes, fitted to published
// throughput. With a quota of B bytes (SO_SNDBUF, DefaultSendWindow; default 8192) about B bytes are unacknowledged
// for writes up to B, and about B + S for larger writes of S bytes.
type AFD struct {
	Quota int // bytes
}

// DefaultAFDQuota is AFD's DefaultSendWindow on hosts with more than 19 MB of memory.
const DefaultAFDQuota = 8192

// Outstanding returns the unacknowledged bytes with writes of one size.
func (a AFD) Outstanding(write int) int {
	if write <= 0 {
		return 0
	}
	if write > a.Quota {
		return a.Quota + write
	}
	return a.Quota
}
