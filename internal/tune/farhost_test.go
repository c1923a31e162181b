package tune

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// farWith returns a far host with fixed output for each command, and the commands that it got.
func farWith(outputs map[string]string) (*FarHost, *[]string) {
	var asked []string
	return &FarHost{Run: func(_ context.Context, args []string, _ []byte) ([]byte, error) {
		asked = append(asked, strings.Join(args, " "))
		return []byte(outputs[args[0]]), nil
	}}, &asked
}

func TestFarHost_PlannedFromItsValues(t *testing.T) {
	target, err := plan.ParseTarget("linux")
	if err != nil {
		t.Fatal(err)
	}
	d := &Direction{Path: Path{RTT: 60 * time.Millisecond, BottleneckBps: 20e6, MSS: 1448, Window: 150_000}}
	for values, needs := range map[string]bool{`"4096 65536 65536"`: true, `"4096 131072 67108864"`: false} {
		far, _ := farWith(map[string]string{"audit": `{"values": {"net.ipv4.tcp_rmem": ` + values + `}}`})
		if got, err := d.PlanFar(t.Context(), far, target); err != nil || got != needs {
			t.Errorf("%s: needs %v, %v: %+v", values, got, err, far.plan)
		}
	}
	far, asked := farWith(nil)
	d.Delay = &record.TuneDelay{}
	if got, err := d.PlanFar(t.Context(), far, target); got || err != nil || len(*asked) > 0 {
		t.Errorf("for a shorter queue: %v, %v, asked %q", got, err, *asked)
	}
}

// TestFarHost_NotTrusted checks that errors of the far host are reported, and that a change which it reports
// without being asked is not undone.
func TestFarHost_NotTrusted(t *testing.T) {
	ours := &plan.Plan{Settings: []plan.Setting{{Name: "net.ipv4.tcp_rmem"}}}
	far, asked := farWith(map[string]string{"status": `{"settings": [{"name": "net.ipv4.tcp_rmem"}]}`})
	far.plan = ours
	if _, err := far.Changes(t.Context()); err == nil || len(*asked) != 1 {
		t.Errorf("%v, asked %q", err, *asked)
	}
	far, asked = farWith(map[string]string{"undo": `{"changes": []}`})
	far.plan = ours
	if _, err := far.revert(t.Context(), []host.Did{{Name: "net.ipv4.tcp_rmem", Outcome: host.Changed},
		{Name: "net.ipv4.tcp_sack", Outcome: host.Changed}}); err != nil || (*asked)[0] != "undo --json net.ipv4.tcp_rmem" {
		t.Errorf("%v, asked %q", err, *asked)
	}
	far, _ = farWith(map[string]string{"status": `{"error": {"message": "no"}}`})
	far.plan = ours
	if _, err := far.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "no") {
		t.Error(err)
	}
}

// Where the far host does not take its changes, this one is put back.
func TestToggle_BothSidesOrNone(t *testing.T) {
	near, far := &fakeSide{}, &fakeSide{fails: true}
	s := &toggle{sides: []side{near, far}}
	if err := s.set(t.Context(), true); err == nil || s.on || near.on || far.on {
		t.Errorf("%v: on %v, near %v, far %v", err, s.on, near.on, far.on)
	}
	far.fails = false
	if err := s.set(t.Context(), true); err != nil || !near.on || !far.on {
		t.Errorf("%v: near %v, far %v", err, near.on, far.on)
	}
	if err := s.set(t.Context(), false); err != nil || near.on || far.on {
		t.Errorf("%v: near %v, far %v", err, near.on, far.on)
	}
}

type fakeSide struct{ on, fails bool }

func (f *fakeSide) apply(context.Context) ([]host.Did, error) {
	if f.fails {
		return nil, context.DeadlineExceeded
	}
	f.on = true
	return nil, nil
}

func (f *fakeSide) revert(context.Context, []host.Did) ([]host.Did, error) {
	f.on = false
	return nil, nil
}
