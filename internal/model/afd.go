package model

// AFD models how the socket layer of Windows NT 4 to XP (afd.sys) buffers blocking writes, fitted to published
// throughput. With a quota of B bytes (SO_SNDBUF, DefaultSendWindow; default 8192) about B bytes are unacknowledged
// for writes up to B, and about B + S for larger writes of S bytes.
type AFD struct {
	Quota int // bytes
}

// DefaultAFDQuota is AFD's DefaultSendWindow on hosts with 19 MB of memory or more.
const DefaultAFDQuota = 8192

// AFDQuota returns the default of DefaultSendWindow on a host with that many bytes of memory; 0 is not known.
func AFDQuota(memory int64) int {
	if memory > 0 && memory < 19<<20 {
		return 4096
	}
	return DefaultAFDQuota
}

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
