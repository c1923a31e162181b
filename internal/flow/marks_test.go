package flow

import "testing"

func TestAgreeOnMarks(t *testing.T) {
	for _, c := range []struct {
		name        string
		syn, synAck Flags
		want        marksEcho
	}{
		{"neither", 0, 0, marksUnused},
		{"RFC 3168", ECE | CWR, ECE, marksAsked},
		{"refused", ECE | CWR, 0, marksUnused},
		{"echoed by a broken host", AE | ECE | CWR, AE | ECE | CWR, marksUnused},
		{"counted", AE | ECE | CWR, CWR, marksCounted},
		{"counted, the SYN arrived marked", AE | ECE | CWR, AE | CWR, marksCounted},
		{"asked, not counted", AE | ECE | CWR, ECE, marksAsked},
		{"the nonce of RFC 3540", AE | ECE | CWR, AE | ECE, marksUnused},
		{"not asked for", ECE | CWR, CWR, marksUnused},
		{"only the SYN-ACK captured", 0, ECE, marksUnused},
	} {
		if got := agreeOnMarks(SYN|c.syn, SYN|ACK|c.synAck); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Marks reported in one round trip count once, however many acknowledgements repeat them.
func TestMarksCountRoundTrips(t *testing.T) {
	for _, c := range []struct {
		name  string
		echo  marksEcho
		flags []Flags // for ten acknowledgements each, a segment each, with ten segments outstanding
		want  int64
	}{
		{"none", marksAsked, []Flags{0, 0, 0}, 0},
		{"asked", marksAsked, []Flags{0, ECE, 0, 0, ECE, 0}, 2},
		{"on and on", marksAsked, []Flags{ECE, ECE, ECE, ECE}, 4},
		{"counted", marksCounted, []Flags{AE | ECE, AE | CWR, AE | CWR, AE | CWR | ECE, AE | CWR | ECE}, 2},
		{"not agreed on", marksUnused, []Flags{0, ECE, 0, ECE | AE}, 0},
	} {
		d := &Direction{conn: &Connection{marksEcho: c.echo}, high: 10}
		for i, flags := range c.flags {
			for k := range 10 {
				d.high++
				d.reported(ACK|flags, int64(10*i+k+1))
			}
		}
		if d.Marks != c.want || int64(d.cur.Marks) != c.want {
			t.Errorf("%s: %d marks, want %d", c.name, d.Marks, c.want)
		}
	}
}
