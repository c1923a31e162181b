package model

// AFD is how the socket layer of Windows NT 4 to XP (afd.sys) buffers blocking writes,
// fitted to published throughput over write sizes: with a quota of B bytes
// (SO_SNDBUF, DefaultSendWindow; 8192 by default) about B bytes are outstanding for
// writes up to B, and about B + S for larger writes of S bytes, which are taken whole
// as soon as the quota is not exceeded.
type AFD struct {
	Quota int // bytes
}

// DefaultAFDQuota is AFD's DefaultSendWindow on hosts with more than 19 MB of memory.
const DefaultAFDQuota = 8192

// Accepts says whether a write of that many bytes is taken while so many are
// outstanding (written and not yet acknowledged).
func (a AFD) Accepts(write, outstanding int) bool {
	if write > a.Quota {
		return outstanding <= a.Quota
	}
	return outstanding+write <= a.Quota
}

// Outstanding is the largest number of bytes that writes of one size keep unacknowledged.
func (a AFD) Outstanding(write int) int {
	if write <= 0 {
		return 0
	}
	if write > a.Quota {
		return a.Quota + write
	}
	return a.Quota
}
