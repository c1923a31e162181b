package bulk

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestProgress_LastBytesMissed counts bytes after a report whose time is later than theirs, as on a busy host. The
// final interval has them, and a length.
func TestProgress_LastBytesMissed(t *testing.T) {
	var all []transfer.Interval
	l := &loop{}
	p := progress{clock: clock{time.Now().Add(-time.Second)}, loops: []*loop{l}, latest: &Latest{}, samples: &sampler{},
		each: func(i transfer.Interval) { all = append(all, i) }}
	l.first.Store(int64(100 * time.Millisecond))
	l.last.Store(int64(900 * time.Millisecond))
	l.bytes.Store(1000)
	p.report(false)
	l.bytes.Store(1500)
	p.report(true)
	if len(all) != 2 || all[1].Bytes != 500 || all[1].Start != all[0].End || all[1].End <= all[1].Start {
		t.Errorf("%+v", all)
	}
	p.report(true)
	if len(all) != 2 {
		t.Errorf("an interval without bytes: %+v", all[2:])
	}
}
