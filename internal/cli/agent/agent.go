// Package agent is the command agent: this host measures the paths that a hub asks for.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

type flags struct {
	join, joinFile string
	name           string
	labels         []string
	listen         string
	limits         string
	addresses      []string
	drops          farend.DropsFlag
}

// idleAfter is the time after a connect or a delivery at which an agent usually waits for the next order.
const idleAfter = 3 * time.Second

// defaultLimits is where a host's owner limits its agent.
const defaultLimits = "/etc/fullpipe/agent.toml"

// New returns the command agent.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "measure the paths that a fleet's hub asks for",
		Long: `agent joins a fleet with a token of fullpipe-hub and takes part in its tests
until it is interrupted: it measures other agents, and others measure it. It never changes
this host. Results wait on the disk until the hub has stored them.

` + defaultLimits + ` limits the agent. The hub cannot change it:

  day-bytes = "20GB"            # of all tests, both ways
  day-time = "20m"
  most-time = "10s"             # of one transfer
  most-rate = "500mbit"
  quiet-hours = "08:00-18:00"
  zone = "Europe/Berlin"
  peers = ["10.0.0.0/8"]        # agents that test with this one

Without that file the limits per day are 10 GB and 10 minutes. If the file has an error,
the agent runs no test.`,
		Example: `  FULLPIPE_JOIN=fph1.eyJ1Ijpb... fullpipe agent
  fullpipe agent                       # a host that has joined
  fullpipe agent --join-file /run/secrets/join --labels site=berlin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.join, "join", "", "join with this `TOKEN` (of fullpipe-hub token); needed once. "+
		"Other users of this host can see it: better $FULLPIPE_JOIN or --join-file")
	flags.StringVar(&f.joinFile, "join-file", "", "a `FILE` with the token, - is standard input")
	flags.StringVar(&f.name, "name", "", "this host's name in the fleet; default: its host name")
	flags.StringSliceVar(&f.labels, "labels", nil, "`LABELS` of this host, as in site=berlin,rack=7")
	flags.StringVar(&f.listen, "listen", server.DefaultAddress,
		"`ADDR:PORT` where other agents connect; another port if it is taken")
	flags.StringVar(&f.limits, "limits", defaultLimits, "a `FILE` with this host's own limits")
	flags.StringSliceVar(&f.addresses, "address", nil, "an `ADDRESS` of this host for other agents; default: all of its "+
		"interfaces")
	f.drops.Add(flags)
	return cmd
}

// Dir returns the agent's state directory.
func Dir() (string, error) {
	dir, err := store.Dir()
	return filepath.Join(dir, "agent"), err
}

func (f *flags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if err := f.drops.Check(); err != nil {
		return err
	}
	dir, err := Dir()
	if err != nil {
		return err
	}
	labels, err := parseLabels(f.labels)
	if err != nil {
		return err
	}
	state, key, err := f.membership(cmd, dir, labels)
	if err != nil {
		return err
	}
	hostID, err := store.HostID(dir)
	if err != nil {
		return fmt.Errorf("this host's name in records: %w", err)
	}
	losses, err := f.drops.Watch()
	if err != nil {
		return err
	}
	defer losses.Close()
	events := console.EventLog(cmd)
	defer events.Close()
	c := agent.Config{State: state, Key: key, TLS: bus.PinnedTLS(state.Pin), Dir: dir, HostID: hostID,
		Version: build.Version(), Labels: labels, Listen: f.listen, Measure: measure(hostID, losses), Losses: losses.Begin,
		Event: func(e agent.Event) {
			printEvent(cmd, events, e)
			if e.Kind == "connected" || e.Kind == "stored" {
				time.AfterFunc(idleAfter, host.ReleaseCode)
			}
		}}
	c.Addresses, err = f.ownAddresses()
	if err != nil {
		return err
	}
	c.Limits, c.LimitsErr = readLimits(f.limits, f.limits != defaultLimits)
	if c.LimitsErr != nil {
		console.Note(cmd, "%s: %v: no test is made until it is mended", f.limits, c.LimitsErr)
	}
	err = agent.Run(ctx, c)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(f.listen) // it was listened at
		c.Listen = net.JoinHostPort(host, "0")
		err = agent.Run(ctx, c)
	}
	return err
}

// membership returns the fleet that this host is in. It joins with a token where it is in none yet.
func (f *flags) membership(cmd *cobra.Command, dir string, labels map[string]string) (agent.State,
	nkeys.KeyPair, error) {
	state, key, err := agent.Load(dir)
	if err == nil || !errors.Is(err, agent.ErrNotJoined) {
		return state, key, err
	}
	text, err := f.joinToken(cmd)
	if err != nil {
		return state, nil, err
	}
	token, err := bus.ParseToken(text)
	if err != nil {
		return state, nil, exit.Usage("--join", err.Error(), "the token that fullpipe-hub token prints")
	}
	name := f.name
	if name == "" {
		name, _ = os.Hostname()
	}
	hostID, err := store.HostID(dir)
	if err != nil {
		return state, nil, err
	}
	return agent.Join(cmd.Context(), dir, token, bus.JoinRequest{HostID: hostID, Name: name, Labels: labels})
}

// joinToken returns the token of the flags or of the environment.
func (f *flags) joinToken(cmd *cobra.Command) (string, error) {
	const maxToken = 64 << 10 // bytes
	if f.joinFile != "" {
		text, err := input.Read(cmd, f.joinFile, maxToken)
		if err != nil {
			return "", exit.Usage("--join-file", exit.Plain(err), "a file with the token of fullpipe-hub token")
		}
		return string(text), nil
	}
	if f.join != "" {
		console.Note(cmd, "note: other users of this host can see the token of --join: $%s and --join-file hide it",
			secret.Join)
		return f.join, nil
	}
	text := os.Getenv(secret.Join)
	if text == "" {
		return "", exit.Usage("--join", "this host is in no fleet yet", "the token that fullpipe-hub token prints")
	}
	return text, nil
}

func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, exit.Usage("--labels", fmt.Sprintf("%q is not NAME=VALUE", text), "--labels site=berlin")
		}
		labels[name] = value
	}
	return labels, nil
}

// ownAddresses returns the addresses on which other agents may reach this host.
func (f *flags) ownAddresses() (all []netip.Addr, err error) {
	for _, text := range f.addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, exit.Usage("--address", fmt.Sprintf("%q is no IP address", text), "an address such as 192.0.2.7")
		}
		all = append(all, a)
	}
	if len(all) > 0 {
		return all, nil
	}
	return socket.HostAddresses(), nil
}

// readLimits reads the limits file. A missing one is an error only where it was asked for.
func readLimits(path string, asked bool) (agent.Limits, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return agent.DefaultLimits(), nil
	}
	if err != nil {
		return agent.DefaultLimits(), err
	}
	return agent.ParseLimits(text)
}

// eventLine is a line of agent --json.
type eventLine struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Run    string    `json:"run,omitempty"`
	Role   string    `json:"role,omitempty"`
	Far    string    `json:"far,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Name   string    `json:"name,omitempty"`
	Addr   string    `json:"address,omitempty"`
	Begin  time.Time `json:"begin,omitzero"`
	End    time.Time `json:"end,omitzero"`
}

// printEvent prints an event. The hub can cause all of them; only a test takes its time.
func printEvent(cmd *cobra.Command, out *serverlog.Log, e agent.Event) {
	if !console.WantsJSON(cmd) && console.IsSet(cmd, "quiet") && e.Kind != "ready" && e.Kind != "connected" {
		return
	}
	at := time.Now().UTC()
	line := func() string { return eventText(cmd, at, e) }
	switch e.Kind {
	case "done":
		_, _ = out.Results().Write([]byte(line() + "\n")) // lines that are not read in time are counted
	default:
		out.Print(serverlog.Kind{Event: e.Kind, Trusted: e.Kind != "refused"}, line)
	}
}

func eventText(cmd *cobra.Command, at time.Time, e agent.Event) string {
	line := eventLine{At: at, Event: e.Kind, Run: e.Run, Role: e.Role, Far: e.Far, Reason: string(e.Reason),
		Detail: e.Detail, Begin: e.Begin, End: e.End}
	if e.Hub != nil {
		line.Name = e.Hub.Name
	}
	if e.Addr.IsValid() {
		line.Addr = e.Addr.String()
	}
	if console.WantsJSON(cmd) {
		text, _ := json.Marshal(line) // texts and times
		return string(text)
	}
	words := []string{at.Format(time.TimeOnly), e.Kind}
	for _, word := range []string{line.Addr, line.Name, e.Role, e.Far, line.Reason, e.Detail, e.Run} {
		if word != "" {
			words = append(words, word)
		}
	}
	return render.Line(strings.Join(words, "  "))
}
