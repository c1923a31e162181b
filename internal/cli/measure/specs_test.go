package measure

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestSpecs_TimeAndBytes checks which of --time, --bytes and --max-bytes end a transfer.
func TestSpecs_TimeAndBytes(t *testing.T) {
	for _, c := range []struct {
		args  []string
		time  time.Duration
		bytes int64
	}{
		{nil, 5 * time.Second, 0},
		{[]string{"--bytes", "1MB"}, 0, 1e6},
		{[]string{"--max-bytes", "1MB"}, 5 * time.Second, 1e6},
		{[]string{"--max-bytes", "1MB", "--time", "9s"}, 9 * time.Second, 1e6},
		{[]string{"--max-bytes", "1MB", "--bytes", "2MB"}, 0, 1e6},
		{[]string{"--max-bytes", "2MB", "--bytes", "1MB"}, 0, 1e6},
	} {
		cmd, f := command()
		must.Do(t, cmd.ParseFlags(c.args))
		specs, err := f.specs()
		if err != nil || len(specs) != 1 || specs[0].Time != c.time || specs[0].Bytes != c.bytes {
			t.Errorf("%v: %+v, %v", c.args, specs, err)
		}
	}
	cmd, f := command()
	must.Do(t, cmd.ParseFlags([]string{"--udp", "--max-bytes", "1MB"}))
	if f.checkForms() == nil {
		t.Error("--max-bytes is accepted with --udp")
	}
}
