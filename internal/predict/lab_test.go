package predict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// labRun is a line of testdata/lab.jsonl: three measurements in the lab on Linux 6.18 with one connection and automatic
// buffers. bench's TestBankOneModel repeats them.
type labRun struct {
	Path               string
	LargestBufferBytes int       `json:"largest_buffer_bytes"` // third number of tcp_rmem and tcp_wmem; 0: the stack's
	Seconds            int       // of each transfer
	GoodputBps         []float64 `json:"goodput_bps"`
	SteadyGoodputBps   []float64 `json:"steady_goodput_bps"` // after the startup
}

// TestOneModel checks that predict, plan and audit agree with the lab within 15 % on every path and system.
func TestOneModel(t *testing.T) {
	file := must.Get(os.Open("testdata/lab.jsonl"))(t)
	defer file.Close()
	lines := json.NewDecoder(file)
	runs := 0
	for {
		var run labRun
		if err := lines.Decode(&run); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		runs++
		t.Run(fmt.Sprintf("%s,%d", run.Path, run.LargestBufferBytes), func(t *testing.T) { checkLabRun(t, run) })
	}
	if runs != 24 {
		t.Errorf("%d combinations, want 6 paths x 4 systems", runs)
	}
}

func checkLabRun(t *testing.T, run labRun) {
	const tolerance = 0.15
	path := must.Get(link.Parse(run.Path))(t)
	values := map[string]string{}
	for _, s := range path.Near.Sysctls {
		values["net."+s.Name] = s.Value
	}
	if run.LargestBufferBytes > 0 {
		values["net.ipv4.tcp_rmem"] = fmt.Sprintf("4096 131072 %d", run.LargestBufferBytes)
		values["net.ipv4.tcp_wmem"] = fmt.Sprintf("4096 16384 %d", run.LargestBufferBytes)
		for _, host := range []*link.Stack{&path.Near, &path.Far} {
			host.Sysctls = slices.Clone(host.Sysctls)
			for i, s := range host.Sysctls {
				host.Sysctls[i].Value = values["net."+s.Name]
			}
		}
	}
	goodput := median(run.GoodputBps)
	steady := median(run.SteadyGoodputBps)

	predicted := must.Get(Transfer(path, Setup{Time: time.Duration(run.Seconds) * time.Second}))(t)
	if math.Abs(predicted.Typical/goodput-1) > tolerance || goodput < predicted.Low || goodput > predicted.High {
		t.Errorf("predict %.4g (%.4g to %.4g), measured %.4g Mbit/s", predicted.Typical/1e6, predicted.Low/1e6,
			predicted.High/1e6, goodput/1e6)
	}

	target := must.Get(plan.ParseTarget(path.Near.Name))(t)
	rate := float64(path.Up.Rate)
	options := plan.Options{}
	if strings.HasPrefix(path.Near.Name, "linux-") {
		options.Values = values
	}
	planned := must.Get(plan.New(plan.Path{RateBps: rate, RTT: path.RTT}, target, options))(t)
	if math.Abs(planned.Now.GoodputBps/steady-1) > tolerance {
		t.Errorf("plan %.4g now, measured %.4g Mbit/s", planned.Now.GoodputBps/1e6, steady/1e6)
	}

	snapshot := &audit.Snapshot{System: target.Family, Version: target.Version, Values: maps.Clone(options.Values)}
	if target.Family == "windows" {
		snapshot.Values = map[string]string{"AutoTuningLevelLocal": "Normal"}
	}
	audited := model.Goodput(rate, plan.DefaultMSS, model.IPHeaders) // where the host limits nothing, the line does
	for _, f := range audit.Judge(snapshot, audit.Path{RateBps: rate, RTT: path.RTT}) {
		if f.Grade == audit.Limits {
			audited = min(audited, f.CapBps)
		}
	}
	if math.Abs(audited/steady-1) > tolerance {
		t.Errorf("audit %.4g, measured %.4g Mbit/s", audited/1e6, steady/1e6)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
