package recheck

import (
	"testing"
	"time"
)

func TestWhichServersArePublic(t *testing.T) {
	for _, c := range []struct {
		peer        string
		public, own bool // own: with --own
	}{
		{"ndt7://127.0.0.1:8080", false, false}, {"ndt7://[::1]", false, false}, {"ndt7://10.1.2.3:443", false, false},
		{"ndt7://192.168.0.9", false, false}, {"ndt7://[fd00::1]:80", false, false},
		{"ndt7://100.64.0.1", false, false},
		{"ndt7://198.18.0.2:8080", false, false}, {"ndt7://[fe80::1%25lo]:80", false, false},
		{"ndt7://9.9.9.9", true, false}, {"ndt7://[2620:fe::fe]:443/?access_token=x", true, false},
		{"ndt7://no-such-host.invalid", true, false},
		{"ndt7://ndt-mlab1-lga0t.mlab-oti.measurement-lab.org", true, true},
		{"ndt7://NDT.Measurement-Lab.ORG.:443", true, true}, {"ndt7://measurementlab.net?client_name=x", true, true},
		{"fullpipe://9.9.9.9", false, false}, {"https://measurementlab.net/", false, false},
	} {
		if is := publicServer(t.Context(), c.peer, false); is != c.public {
			t.Errorf("%s: %v", c.peer, is)
		}
		if is := publicServer(t.Context(), c.peer, true); is != c.own {
			t.Errorf("%s, said to be the user's own: %v", c.peer, is)
		}
	}
}

// TestATurnOutlivesItsProcess: the time of the next test of public servers is every process',
// and a clock that was set does not put it off for long.
func TestATurnOutlivesItsProcess(t *testing.T) {
	a, b := &rechecker{dir: t.TempDir()}, &rechecker{}
	b.dir = a.dir
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		of    *rechecker
		at    time.Duration
		until time.Duration // 0: it has the turn, and the next one is in five hours
	}{{a, 0, 0}, {b, time.Minute, 5 * time.Hour}, {a, 4 * time.Hour, 5 * time.Hour}, {b, 5 * time.Hour, 0},
		{a, 9 * time.Hour, 10 * time.Hour}, {a, -20 * 24 * time.Hour, 0}, {b, -20*24*time.Hour + time.Hour,
			-20*24*time.Hour + 5*time.Hour}} {
		at := now.Add(c.at)
		until, err := c.of.turn(at, at.Add(5*time.Hour))
		if err != nil || c.until == 0 != until.IsZero() || c.until != 0 && !until.Equal(now.Add(c.until)) {
			t.Errorf("after %v: %v, %v", c.at, until, err)
		}
	}
}
