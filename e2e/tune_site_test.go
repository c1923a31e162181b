//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// tuneSite is a lab with a server at its far end.
type tuneSite struct {
	lab  *lab.Lab
	env  []string
	far  netip.Addr
	slow bool // at most 20 Mbit/s: may be measured beside others
}

func newTuneSite(t *testing.T, profile string) *tuneSite {
	t.Helper()
	l, made := bench(t, profile)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	site := &tuneSite{lab: l, far: lab.FarAddr, env: []string{"FULLPIPE_KEY=" + probe.NewKey().String()},
		slow: max(made.Up.Rate, made.Down.Rate) <= 20_000_000}
	if _, err := l.Far.Start(lab.Command{Args: []string{self}, Env: append(site.env, programVariable+"=serve"),
		Stderr: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return site
}

// config is the path as the search would describe it.
func (s *tuneSite) config(mss int, capacity, rtt float64) search.Config {
	round := time.Duration((rtt + float64(mss+52)*8/capacity) * float64(time.Second))
	return search.Config{MSS: mss, RTT: round, CapacityBps: capacity, Knee: capacity / 8 * round.Seconds()}
}

func (s *tuneSite) tune(t *testing.T, direction transfer.Direction, more ...string) (doc tuned) {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	args := append([]string{program, "tune", "fullpipe://" + hostText(s.far), "--direction", string(direction),
		"--json"}, more...)
	status, err := s.lab.Near.Run(lab.Command{Args: args, Env: s.env, Stdout: &out, Stderr: &problems})
	if err != nil || status != 0 && status != 3 { // 3: nothing helps
		t.Fatalf("tune: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return doc
}

// cells measures windows one after the other and appends their goodputs.
func (s *tuneSite) cells(t *testing.T, direction transfer.Direction, path search.Config, windows []int,
	goodput map[int][]float64) {
	t.Helper()
	var specs []transfer.Spec
	for _, w := range windows {
		spec := transfer.Spec{Direction: direction, Time: path.Length(w)}
		sender, receiver := &spec.Near, &spec.Far
		if direction == transfer.Down {
			sender, receiver = receiver, sender
		}
		sender.SendBuffer, receiver.ReceiveBuffer, receiver.Clamp = w+w/4, w, w
		specs = append(specs, spec)
	}
	for i, bps := range s.goodputs(t, specs) {
		goodput[windows[i]] = append(goodput[windows[i]], bps)
	}
}

// hostText is an address as PEER takes it.
func hostText(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// goodputs measures Specs one after the other, each without slow start; 1 bit/s at least.
func (s *tuneSite) goodputs(t *testing.T, specs []transfer.Spec) (all []float64) {
	t.Helper()
	var texts bytes.Buffer
	for _, spec := range specs {
		if err := json.NewEncoder(&texts).Encode(spec); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.CreateTemp(t.TempDir(), "cells")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Write(texts.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	status, err := s.lab.Near.Run(lab.Command{Args: []string{self}, Env: append(slices.Clone(s.env),
		programVariable+"=cells", farVariable+"="+s.far.String()),
		Stdin: in, Stdout: &out, Stderr: &problems})
	if err != nil || status != 0 {
		t.Fatalf("cells: status %d, %v: %s", status, err, problems.String())
	}
	lines := strings.Fields(out.String())
	if len(lines) != len(specs) {
		t.Fatalf("%d cells of %d: %s", len(lines), len(specs), problems.String())
	}
	for _, line := range lines {
		bps, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, math.Max(bps, 1))
	}
	return all
}

// farVariable names the address that cellsProgram measures to.
const farVariable = "FULLPIPE_E2E_FAR"

// cellsProgram carries out the Specs on its standard input, one a line, and prints the
// goodput of each after slow start.
func cellsProgram() error {
	key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	far, err := peer.Open(ctx, net.JoinHostPort(os.Getenv(farVariable), "5201"), peer.Options{Key: &key,
		Await: 5 * time.Second})
	if err != nil {
		return err
	}
	defer far.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var spec transfer.Spec
		if err := json.Unmarshal(lines.Bytes(), &spec); err != nil {
			return err
		}
		result, err := transfer.Run(ctx, far, spec, nil)
		if err != nil {
			return err
		}
		bps := 0.0
		if received, ok := result.Received(); ok {
			bps = received.Bps()
		}
		if startup, ok := result.Startup(); ok {
			bps = startup.SteadyBps
		}
		fmt.Println(bps)
	}
	return lines.Err()
}
