package probe

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSession_EndsWhenItsKeyExpires keeps a session idle.
func TestSession_EndsWhenItsKeyExpires(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	for _, tt := range []struct {
		name  string
		valid time.Duration // 0: never
		want  time.Duration
		ended bool
	}{
		{"within the idle time", time.Minute, time.Minute, true},
		{"after the idle time", time.Hour, 5 * time.Minute, false},
		{"never", 0, 5 * time.Minute, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, h := time.Now(), Holder{Name: "a", Key: NewKey()}
			if tt.valid > 0 {
				h.Until = begun.Add(tt.valid)
			}
			secured, ended := servedTo(t, &Session{Certificate: cert, Key: NewKey(),
				Holders: func() []Holder { return []Holder{h} }}, h.Key)
			go io.Copy(io.Discard, secured)
			err := <-ended
			if took := time.Since(begun); took != tt.want || errors.Is(err, ErrKeyEnded) != tt.ended {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}

// TestSession_ChecksItsKeyAtEachRequest changes the server's keys during a session.
func TestSession_ChecksItsKeyAtEachRequest(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	key, minute := NewKey(), offer{Spec: transfer.Spec{Direction: transfer.Up, Time: time.Minute}}
	for _, tt := range []struct {
		name  string
		now   []Holder
		wants string // to an offer of 1 min
		ended bool
	}{
		{"another name", []Holder{{Name: "a-before", Key: key, Time: time.Second}}, "more than the far end's 1s", false},
		{"tighter bounds", []Holder{{Name: "a", Key: key, Time: 2 * time.Second}}, "more than the far end's 2s", false},
		{"wider bounds", []Holder{{Name: "a", Key: key, Time: time.Hour}}, "more than the far end's 30s", false},
		{"removed", nil, "no longer valid", true},
		{"another secret", []Holder{{Name: "a", Key: NewKey()}}, "no longer valid", true},
		{"expired", []Holder{{Name: "a", Key: key, Until: time.Unix(1, 0)}}, "no longer valid", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := DefaultLimits()
			limits.Time = 30 * time.Second // the server's key
			var now atomic.Pointer[[]Holder]
			now.Store(&[]Holder{{Name: "a", Key: key, Time: 10 * time.Second}})
			s := &Session{Certificate: cert, Key: NewKey(), Hello: Hello{Limits: limits},
				Holders: func() []Holder { return *now.Load() }}
			secured, ended := servedTo(t, s, key)
			answer := func() string {
				go writeMessage(secured, kindOffer, minute)
				for {
					m, err := readMessage(secured, maxAnswer)
					if err != nil {
						return err.Error()
					}
					if a := (accept{}); m.kind == kindAccept && m.decode(kindAccept, &a) == nil {
						return a.Error
					}
				}
			}
			if got := answer(); !strings.Contains(got, "more than the far end's 10s") {
				t.Errorf("%s: at first %q", tt.name, got)
			}
			now.Store(&tt.now)
			if got := answer(); !strings.Contains(got, tt.wants) {
				t.Errorf("%s: then %q, want %q", tt.name, got, tt.wants)
			}
			secured.NetConn().Close()
			if err := <-ended; errors.Is(err, ErrKeyEnded) != tt.ended {
				t.Errorf("%s: the session ended with %v", tt.name, err)
			}
		})
	}
}
