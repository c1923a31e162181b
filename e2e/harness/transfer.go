//go:build linux

package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Goodput returns the goodput in bit/s at the receiver.
func Goodput(r *transfer.Result) float64 {
	span, _ := r.Received()
	return span.Bps()
}

// LabTransfer is a path and one transfer over it.
type LabTransfer struct {
	Path string // as `lab` takes it
	// Near and Far are shell commands that run at the ends before the transfer. $DEVICE is the link.
	Near, Far string
	Spec      transfer.Spec
	IPv6      bool
	Captures  *Captures     // nil: none
	Account   *lab.Lateness // set after the transfer unless nil
}

// farOverrideVariable names the variable with the far end's address where that is not its IPv4 address.
const farOverrideVariable = "FULLPIPE_TEST_FAR"

// serveProgram runs a fullpipe server in a lab.
func serveProgram() error {
	key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
	if err != nil {
		return err
	}
	s, err := server.New(context.Background(), server.Config{Key: key})
	if err != nil {
		return err
	}
	return s.Serve(context.Background())
}

// transferProgram runs the Spec on its standard input with the lab's far end and prints the Result.
func transferProgram() error {
	key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
	if err != nil {
		return err
	}
	var spec transfer.Spec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), spec.Time+time.Minute)
	defer cancel()
	to := cmp.Or(os.Getenv(farOverrideVariable), os.Getenv("FULLPIPE_FAR"))
	far, err := peer.Open(ctx, net.JoinHostPort(to, "5201"), peer.Options{Key: &key,
		Await: 5 * time.Second})
	if err != nil {
		return err
	}
	defer far.Close()
	result, err := transfer.Run(ctx, far, spec, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// RunTransfer starts a lab, runs the transfer in it and closes it.
func RunTransfer(t *testing.T, s LabTransfer) (*transfer.Result, error) {
	t.Helper()
	path, err := link.Parse(s.Path)
	if err != nil {
		return nil, err
	}
	config := lab.Config{Path: path}
	if s.Captures != nil && s.Captures.Middle != "" {
		if config.Tap, err = os.Create(s.Captures.Middle); err != nil {
			return nil, err
		}
		defer config.Tap.Close()
	}
	l, err := lab.Start(t.Context(), config)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for end, script := range map[*lab.End]string{l.Near: s.Near, l.Far: s.Far} {
		script = "DEVICE=$(awk 'NR == 2 {print $1}' /proc/net/route); " + script
		if _, err := end.Output("sh", "-ec", script); err != nil {
			return nil, fmt.Errorf("%s: %w", script, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := []string{"FULLPIPE_KEY=" + probe.NewKey().String()}
	if s.IPv6 {
		_, far := lab.Hosts(path)
		env = append(env, farOverrideVariable+"="+far.Addr6.String())
	}
	var problems bytes.Buffer
	if _, err := l.Far.Start(lab.Command{Args: []string{self}, Env: append(env, ProgramVariable+"=serve"),
		Stderr: &problems}); err != nil {
		return nil, err
	}
	spec, err := asFile(s.Spec)
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	stop := func() error { return nil }
	if s.Captures != nil {
		if stop, err = s.Captures.tapEnds(l); err != nil {
			return nil, err
		}
	}
	var out, errs bytes.Buffer
	status, err := l.Near.Run(lab.Command{Args: []string{self}, Env: append(env, ProgramVariable+"=transfer"), Stdin: spec,
		Stdout: &out, Stderr: &errs})
	if err != nil || status != 0 {
		return nil, fmt.Errorf("transfer over %s: status %d, %v: %s", s.Path, status, err, strings.TrimSpace(errs.String()))
	}
	var result transfer.Result
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		return nil, fmt.Errorf("transfer over %s: %w", s.Path, err)
	}
	if s.Account != nil {
		*s.Account, err = l.Lateness()
		if err != nil {
			return nil, err
		}
	}
	return &result, errors.Join(stop(), l.Close()) // the middle's capture is whole once the lab is gone
}

// asFile returns a pipe from which the value can be read as JSON.
func asFile(v any) (*os.File, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.Write(text); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}
