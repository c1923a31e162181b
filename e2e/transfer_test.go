//go:build linux

package e2e

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

// setup is a path and one transfer over it.
type setup struct {
	path string // as lab takes it
	// near and far are shell commands run at the ends beforehand; $DEVICE is the link.
	near, far string
	spec      transfer.Spec
	ipv6      bool
	captures  *captures    // nil: none
	account   *lab.Account // filled in at the end, unless nil
}

// otherFarVariable names the far end where it is not to be met by its IPv4 address.
const otherFarVariable = "FULLPIPE_TEST_FAR"

// serveProgram is a fullpipe server in a lab.
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

// transferProgram carries out the Spec on its standard input with the lab's far end and
// prints the Result.
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
	to := cmp.Or(os.Getenv(otherFarVariable), os.Getenv("FULLPIPE_FAR"))
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

// carryOut makes the lab, runs the transfer in it and takes the lab down.
func carryOut(t *testing.T, s setup) (*transfer.Result, error) {
	t.Helper()
	path, err := link.Parse(s.path)
	if err != nil {
		return nil, err
	}
	config := lab.Config{Path: path}
	if s.captures != nil && s.captures.middle != "" {
		if config.Tap, err = os.Create(s.captures.middle); err != nil {
			return nil, err
		}
		defer config.Tap.Close()
	}
	l, err := lab.Start(t.Context(), config)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for end, script := range map[*lab.End]string{l.Near: s.near, l.Far: s.far} {
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
	if s.ipv6 {
		_, far := lab.Hosts(path)
		env = append(env, otherFarVariable+"="+far.Addr6.String())
	}
	var problems bytes.Buffer
	if _, err := l.Far.Start(lab.Command{Args: []string{self}, Env: append(env, programVariable+"=serve"),
		Stderr: &problems}); err != nil {
		return nil, err
	}
	spec, err := asFile(s.spec)
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	stop := func() error { return nil }
	if s.captures != nil {
		if stop, err = s.captures.tapEnds(l); err != nil {
			return nil, err
		}
	}
	var out, errs bytes.Buffer
	status, err := l.Near.Run(lab.Command{Args: []string{self}, Env: append(env, programVariable+"=transfer"), Stdin: spec,
		Stdout: &out, Stderr: &errs})
	if err != nil || status != 0 {
		return nil, fmt.Errorf("transfer over %s: status %d, %v: %s", s.path, status, err, strings.TrimSpace(errs.String()))
	}
	var result transfer.Result
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		return nil, fmt.Errorf("transfer over %s: %w", s.path, err)
	}
	if s.account != nil {
		if *s.account, err = l.Account(); err != nil {
			return nil, err
		}
	}
	return &result, errors.Join(stop(), l.Close()) // the middle's capture is whole once the lab is gone
}

// asFile is a pipe that holds the value as JSON.
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
