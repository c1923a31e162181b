package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/mcp"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Limits of the tools. docs/mcp.md lists them.
const (
	arithmeticLimit = 15 * time.Second // plan, predict, explain, audit, history
	setupLimit      = 20 * time.Second // of a direction of measure, besides the transfer
	whySetup        = 10 * time.Second // of why, besides the time it looks
	diagnoseLimit   = 60 * time.Second
	maxCapture      = 2 << 30  // bytes of a capture file
	maxSnapshot     = 16 << 20 // bytes of a host's snapshot
	defaultSeconds  = 5
	defaultMB       = 1000
	defaultRequests = 100.0 // a second
	requestBytes    = 1200  // of measure's requests and responses by default
)

// assistant has the tools.
type assistant struct {
	files *files
	run   run
	// keep stores results of measure in the history.
	keep bool
	// keyFile is a file with the server's key; "": the configuration's or the environment's.
	keyFile string
	// hasHistory reports whether any result was stored. history would create the store otherwise.
	hasHistory func() bool
	// measuring has the one measurement at a time: two would measure each other.
	measuring chan struct{}
}

// tools returns all tools.
func (a *assistant) tools() []mcp.Tool {
	return []mcp.Tool{
		newTool(a, mcp.Tool{Name: "measure", Title: "Measure a path", OpenWorld: true,
			Description: "Runs one bounded TCP transfer with a far end and names what limits it, with evidence, confidence " +
				"and remedy. It loads the path: use it only when the user wants a measurement."}, a.measure),
		newTool(a, mcp.Tool{Name: "diagnose", Title: "Diagnose a capture",
			Description: "Names the limiter of each TCP connection in a capture file, with its remedy."}, a.diagnose),
		newTool(a, mcp.Tool{Name: "why", Title: "Why is a program slow", OpenWorld: true,
			Description: "Watches the TCP connections of a running program of this host for some seconds and names what " +
				"limits the heaviest. It changes nothing."}, why),
		newTool(a, mcp.Tool{Name: "explain", Title: "Explain a limiter",
			Description: "Explains a limiter, or a TCP parameter of an operating system, with sources."}, explain),
		newTool(a, mcp.Tool{Name: "plan", Title: "Plan windows",
			Description: "Computes the window and the settings that a system needs for a stated path, by arithmetic alone. It " +
				"sets nothing: the user applies a plan with fullpipe apply."}, plan),
		newTool(a, mcp.Tool{Name: "predict", Title: "Predict goodput",
			Description: "Predicts the goodput of a TCP transfer on a stated path, its limiter and the next one. It measures " +
				"nothing."}, predict),
		newTool(a, mcp.Tool{Name: "audit", Title: "Audit settings",
			Description: "Judges the TCP settings of this host, or those in a snapshot of another, worst first. It changes " +
				"nothing."}, a.audit),
		newTool(a, mcp.Tool{Name: "history", Title: "Stored results",
			Description: "Lists results that this user stored with fullpipe, the newest last."}, a.history),
	}
}

// newTool completes a tool whose options are an O.
func newTool[O described](a *assistant, tool mcp.Tool,
	command func(context.Context, *O) (invocation, error)) mcp.Tool {
	name := tool.Name
	tool.Input = inputSchema[O]()
	tool.Output = map[string]any{"type": "object"} // explain: documents of several kinds
	if schema := record.Schema(name); schema != nil {
		tool.Output = outline(schema)
	}
	tool.Call = func(ctx context.Context, arguments json.RawMessage) (mcp.Result, error) {
		var o O
		if err := decodeOptions(arguments, &o); err != nil {
			return failed(record.Failure{Message: err.Error()}), nil
		}
		if name == "measure" {
			select {
			case a.measuring <- struct{}{}:
				defer func() { <-a.measuring }()
			default:
				return failed(record.Failure{Message: "another measurement is running", Try: "again when it has ended"}), nil
			}
		}
		i, err := command(ctx, &o)
		if err != nil {
			f, _ := exit.Describe(ctx, err)
			return failed(f), nil
		}
		if i.stdin != nil {
			defer i.stdin.Close()
		}
		i.args = slices.Concat([]string{name, "--json", "--quiet"}, flagsOf(&o), i.args)
		done, err := a.run(ctx, i)
		if err != nil {
			return mcp.Result{}, err
		}
		return decoded(done, i.rows)
	}
	return tool
}

// openSchemes returns the kinds of far ends that assistants may name. The user's configuration can name others.
func openSchemes() (names []string) {
	for _, s := range peer.Schemes {
		if s.TestOnly {
			names = append(names, s.Name)
		}
	}
	return names
}

func (a *assistant) measure(_ context.Context, o *measureOptions) (invocation, error) {
	scheme, _, named := strings.Cut(o.Peer, "://")
	schemes := openSchemes()
	if named && !slices.Contains(schemes, scheme) || strings.HasPrefix(o.Peer, lab.Prefix) {
		return invocation{}, exit.Usage("peer", "this kind of far end is not open to assistants",
			"HOST[:PORT], "+strings.Join(schemes, "://, ")+"://, or a name that the user's configuration gives it")
	}
	if o.Seconds == 0 {
		o.Seconds = defaultSeconds
	}
	if o.Megabytes == 0 {
		o.Megabytes = defaultMB
	}
	args := []string{fmt.Sprintf("--time=%gs", o.Seconds)}
	if o.Requests == "" && o.PerSecond == 0 {
		args = append(args, fmt.Sprintf("--max-bytes=%dMB", o.Megabytes))
	} else {
		load, err := o.load()
		if err != nil {
			return invocation{}, err
		}
		args = append(args, load...)
	}
	if !a.keep {
		args = append(args, "--no-history")
	}
	if a.keyFile != "" {
		args = append(args, "--key-file="+a.keyFile)
	}
	each := time.Duration(o.Seconds*float64(time.Second)) + setupLimit
	if o.Direction == "both" {
		each *= 2
	}
	return invocation{args: append(args, "--", o.Peer), limit: each}, nil
}

// load returns the flags of a load of requests. Its rate keeps it within the allowed payload. The streams are
// its requests at a time.
func (o *measureOptions) load() ([]string, error) {
	if o.Requests == "" {
		return nil, exit.Usage("requests_per_s", "is about requests", "requests with it")
	}
	rate := cmp.Or(o.PerSecond, defaultRequests)
	streams := max(o.Streams, 1)
	o.Streams = 0
	if megabytes := rate * o.Seconds * requestBytes / 1e6; megabytes > float64(o.Megabytes) {
		return nil, exit.Usage("requests_per_s", fmt.Sprintf("%g requests/s are %.0f MB, more than max_megabytes", rate,
			megabytes), "a lower rate")
	}
	return []string{"--" + o.Requests, fmt.Sprintf("--rate=%g", rate), fmt.Sprintf("--concurrency=%d", streams)}, nil
}

func (a *assistant) diagnose(ctx context.Context, o *diagnoseOptions) (invocation, error) {
	file, err := a.files.open(ctx, o.File, maxCapture)
	if err != nil {
		return invocation{}, exit.Usage("file", err.Error(), "a capture's name below a directory of --files")
	}
	if o.Top == 0 {
		o.Top = 10
	}
	return invocation{args: []string{"--", "-"}, stdin: file, limit: diagnoseLimit, rows: o.Top}, nil
}

func why(_ context.Context, o *whyOptions) (invocation, error) {
	if o.Seconds == 0 {
		o.Seconds = defaultSeconds
	}
	return invocation{args: []string{"--", o.Target}, limit: time.Duration(o.Seconds*float64(time.Second)) + whySetup}, nil
}

func explain(_ context.Context, o *explainOptions) (invocation, error) {
	return invocation{args: []string{"--", o.Name}, limit: arithmeticLimit}, nil
}

func plan(context.Context, *planOptions) (invocation, error) {
	return invocation{limit: arithmeticLimit}, nil
}

func predict(context.Context, *predictOptions) (invocation, error) {
	return invocation{limit: arithmeticLimit}, nil
}

func (a *assistant) audit(ctx context.Context, o *auditOptions) (invocation, error) {
	i := invocation{limit: arithmeticLimit}
	if o.Snapshot == "" {
		return i, nil
	}
	file, err := a.files.open(ctx, o.Snapshot, maxSnapshot)
	if err != nil {
		return i, exit.Usage("snapshot", err.Error(), "a snapshot's name below a directory of --files")
	}
	i.stdin = file
	i.args = []string{"--", "-"}
	return i, nil
}

func (a *assistant) history(_ context.Context, o *historyOptions) (invocation, error) {
	if !a.hasHistory() {
		return invocation{}, errors.New("no result is stored yet")
	}
	if o.Limit == 0 {
		o.Limit = 20
	}
	i := invocation{limit: arithmeticLimit}
	if o.Peer != "" {
		i.args = []string{"--", o.Peer}
	}
	return i, nil
}
