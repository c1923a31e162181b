package tune

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// FuzzFarAnswer checks that any report of the far host leads to a plan that is refused or can be set, and that nothing
// is undone there that was not requested.
func FuzzFarAnswer(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/snapshot/v1","system":"linux","version":"6.1","memory_bytes":1073741824,` +
		`"values":{"net.ipv4.tcp_rmem":"4096 65536 65536","net.core.rmem_max":"212992"}}`))
	f.Add([]byte(`{"changes":[{"name":"net.ipv4.tcp_rmem","outcome":"changed","old":"1 2 3","new":"4 5 6"}]}`))
	f.Add([]byte(`{"settings":[{"name":"net.ipv4.tcp_rmem"}]}`))
	f.Add([]byte(`{"error":{"message":"no","try":"yes"}}`))
	target, err := plan.ParseTarget("linux")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		var undone []string
		far := &FarHost{Run: func(_ context.Context, args []string, _ []byte) ([]byte, error) {
			if args[0] == "undo" {
				undone = args[2:]
			}
			return said, nil
		}}
		d := &Direction{Path: Path{RTT: 60 * time.Millisecond, BottleneckBps: 20e6, MSS: 1448, Window: 150_000}}
		if _, err := d.PlanFar(t.Context(), far, target); err != nil {
			far.plan = &plan.Plan{Settings: []plan.Setting{{Name: "net.ipv4.tcp_rmem"}}}
		}
		var dids []host.Did
		if dids, err = far.Changes(t.Context()); err == nil {
			_, err = far.revert(t.Context(), dids)
		}
		for _, name := range undone {
			if !slices.ContainsFunc(far.plan.Settings, func(s plan.Setting) bool { return s.Name == name }) {
				t.Errorf("%q is taken back there", name)
			}
		}
		var failed *FarError
		if err != nil && (!errors.As(err, &failed) || failed.Error() == "") {
			t.Errorf("%v", err)
		}
	})
}
