package incident

import (
	"slices"
	"time"
)

// findAway returns the hosts that are away: all of a site, or most of the fleet, are one finding.
func (j *judging) findAway() (found []finding) {
	bySite := map[string][]Host{}
	for _, h := range j.Hosts {
		bySite[h.Site] = append(bySite[h.Site], h)
	}
	if n := len(j.away); n >= minGroup && float64(n) >= minShare*float64(len(j.Hosts)) {
		return []finding{j.awayFinding(Cause{Kind: AllHosts}, j.Hosts)}
	}
	for _, h := range j.Hosts {
		if !j.away[h.ID] {
			continue
		}
		c := Cause{OneHost, h.ID}
		hosts := []Host{h}
		if site := bySite[h.Site]; h.Site != "" && len(site) > 1 && j.allAway(site) {
			c = Cause{OneSite, h.Site}
			hosts = site
			delete(bySite, h.Site)
		} else if h.Site != "" && site == nil {
			continue // in the finding of its site
		}
		found = append(found, j.awayFinding(c, hosts))
	}
	return found
}

func (j *judging) allAway(hosts []Host) bool {
	for _, h := range hosts {
		if !j.away[h.ID] {
			return false
		}
	}
	return true
}

func (j *judging) awayFinding(c Cause, hosts []Host) finding {
	f := finding{cause: c, symptom: Away, of: len(hosts), confirmed: true}
	for _, h := range hosts {
		if !j.away[h.ID] {
			continue
		}
		f.hosts = append(f.hosts, h.ID)
		if f.since.IsZero() || h.Seen.Before(f.since) {
			f.since = h.Seen
		}
	}
	return f
}

// setAway decides which hosts are away, and when the next one may be. Hosts have time to reach a hub that has just
// started, except those that were away before.
func (j *judging) setAway() {
	j.away = map[string]bool{}
	for _, h := range j.Hosts {
		seen := h.Seen
		wasAway := slices.ContainsFunc(j.open, func(known *Incident) bool { return slices.Contains(known.Hosts, h.ID) })
		if seen.Before(j.Since) && !wasAway {
			seen = j.Since
		}
		if at := seen.Add(AwayAfter); j.Now.Before(at) {
			j.wakeAt(at)
		} else {
			j.away[h.ID] = true
		}
	}
}

func (j *judging) wakeAt(at time.Time) {
	if at.After(j.Now) && (j.wake.IsZero() || at.Before(j.wake)) {
		j.wake = at
	}
}
