//go:build linux

package harness

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

// TuneSite is a lab with a server at its far end.
type TuneSite struct {
	Lab    *lab.Lab
	Env    []string
	Far    netip.Addr
	IsSlow bool // at most 20 Mbit/s: may be measured while other tests run
}

// NewTuneSite starts a lab with a path and a server at its far end.
func NewTuneSite(t *testing.T, profile string) *TuneSite {
	t.Helper()
	l, made := StartLab(t, profile)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	site := &TuneSite{Lab: l, Far: lab.FarAddr, Env: []string{"FULLPIPE_KEY=" + probe.NewKey().String()},
		IsSlow: max(made.Up.Rate, made.Down.Rate) <= 20_000_000}
	if _, err := l.Far.Start(lab.Command{Args: []string{self}, Env: append(site.Env, ProgramVariable+"=serve"),
		Stderr: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return site
}

// SearchConfig returns the window search's description of the path.
func (s *TuneSite) SearchConfig(mss int, capacity, rtt float64) search.Config {
	round := time.Duration((rtt + float64(mss+52)*8/capacity) * float64(time.Second))
	return search.Config{MSS: mss, RTT: round, CapacityBps: capacity, Knee: capacity / 8 * round.Seconds()}
}

// Tune runs `tune` in one direction and returns its report. Exit status 3, nothing helps, is no failure.
func (s *TuneSite) Tune(t *testing.T, direction transfer.Direction, more ...string) (doc TuneReport) {
	t.Helper()
	program := Program(t)
	var out, problems bytes.Buffer
	args := append([]string{program, "tune", "fullpipe://" + PeerHost(s.Far), "--direction", string(direction),
		"--json"}, more...)
	status, err := s.Lab.Near.Run(lab.Command{Args: args, Env: s.Env, Stdout: &out, Stderr: &problems})
	if err != nil || status != 0 && status != 3 { // 3: nothing helps
		t.Fatalf("tune: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return doc
}

// MeasureWindows measures each window and appends its goodput in bit/s.
func (s *TuneSite) MeasureWindows(t *testing.T, direction transfer.Direction, path search.Config, windows []int,
	goodput map[int][]float64) {
	t.Helper()
	var specs []transfer.Spec
	for _, w := range windows {
		spec := transfer.Spec{Direction: direction, Time: path.Length(w)}
		sender := &spec.Near
		receiver := &spec.Far
		if direction == transfer.Down {
			sender, receiver = receiver, sender
		}
		sender.SendBuffer = w + w/4
		receiver.ReceiveBuffer = w
		receiver.Clamp = w
		specs = append(specs, spec)
	}
	for i, bps := range s.MeasureGoodputs(t, specs) {
		goodput[windows[i]] = append(goodput[windows[i]], bps)
	}
}

// PeerHost returns an address as PEER takes it.
func PeerHost(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// MeasureGoodputs runs transfers one after the other and returns the goodput of each after slow start, at least 1
// bit/s.
func (s *TuneSite) MeasureGoodputs(t *testing.T, specs []transfer.Spec) (all []float64) {
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
	status, err := s.Lab.Near.Run(lab.Command{Args: []string{self}, Env: append(slices.Clone(s.Env),
		ProgramVariable+"=cells", farVariable+"="+s.Far.String()),
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

// farVariable names the variable with the address that cellsProgram measures to.
const farVariable = "FULLPIPE_E2E_FAR"

// cellsProgram runs the Specs on its standard input, one a line, and prints the goodput of each after slow start.
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
