package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// onDisk returns what a new process would know of the day's use.
func onDisk(t *testing.T, dir string) Use {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(dir, "spent.json")))(t)
	var file ledgerFile
	must.Do(t, json.Unmarshal(text, &file))
	return Use{file.Bytes, file.TimeNs, file.Connections}
}

// accept has an agent accept an order to serve.
func accept(t *testing.T, a *agent, change func(o *bus.Order)) bus.Order {
	t.Helper()
	o := order(bus.RoleServe)
	if change != nil {
		change(&o)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		reply := a.order(bus.Encode(o)).(bus.OrderReply)
		if reply.Refused == "" {
			return o
		}
		if reply.Refused != mesh.Busy || time.Now().After(deadline) { // the server still ends an earlier session
			t.Fatal(reply.Refused, reply.Detail)
		}
		o.Run = order(bus.RoleServe).Run
	}
}

// awaitSettled waits until no transfer is open.
func awaitSettled(t *testing.T, a *agent) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		a.spent.mu.Lock()
		open := a.spent.open
		a.spent.mu.Unlock()
		if open == (Use{}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("charges are open: %+v", open)
		}
	}
}

func offerOf(direction transfer.Direction, bytes int64, streams int) transfer.Spec {
	return transfer.Spec{Direction: direction, Time: 200 * time.Millisecond, Bytes: bytes, Streams: streams}
}

// TestServe_ChargedBeforeTheFirstByte leaves at each stage of a transfer, each way. The charge is on the disk when the
// offer is accepted, the payload that moved stays charged, the rest is given back.
func TestServe_ChargedBeforeTheFirstByte(t *testing.T) {
	const ordered = 3 << 20
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		for name, c := range map[string]struct {
			streams   int
			open      int   // data connections that come
			moved     int64 // by each, until the near end leaves
			atLeast   int64 // charged afterwards
			bytes     int64 // of the offer
			leavesNot bool  // the data connections end first
		}{
			"before the streams":        {streams: 2, bytes: ordered},
			"with one of two streams":   {streams: 2, open: 1, bytes: ordered},
			"in the middle":             {streams: 1, open: 1, moved: 1 << 20, atLeast: 1 << 20, bytes: ordered},
			"in the middle, 4 streams":  {streams: 4, open: 4, moved: 100_000, atLeast: 400_000, bytes: ordered},
			"an offer without bytes":    {streams: 1, open: 1, moved: 1 << 20, atLeast: 1 << 20},
			"without the last messages": {streams: 1, open: 1, moved: math.MaxInt64, atLeast: ordered, bytes: ordered},
			"streams first":             {streams: 3, open: 3, moved: 70_000, atLeast: 210_000, leavesNot: true},
		} {
			t.Run(string(direction)+" "+name, func(t *testing.T) {
				t.Parallel()
				a := newAgent(t, DefaultLimits())
				o := accept(t, a, func(o *bus.Order) {
					o.Spec.Bytes = ordered
					o.Spec.Streams = c.streams
					o.Spec.Time = 5 * time.Second
				})
				n := must.Get(enter(t, a.server.Addr().String(), o.Key))(t)
				spec := offerOf(direction, c.bytes, c.streams)
				spec.Time = o.Spec.Time
				tokens := must.Get(n.offer(spec))(t)
				if got := onDisk(t, a.Dir); got.Bytes != ordered || got.Time != o.Spec.Time {
					t.Errorf("accepted, and charged %+v", got)
				}
				var moving sync.WaitGroup
				for i := range c.open {
					conn := n.stream(tokens[i])
					moving.Go(func() {
						if direction == transfer.Up {
							push(conn, c.moved)
						} else {
							pull(conn, c.moved)
						}
						if c.leavesNot {
							conn.Close()
						}
					})
				}
				moving.Wait()
				if !c.leavesNot {
					if c.moved > 0 && direction == transfer.Up { // all data connections have arrived, or it is over
						n.control.Read(make([]byte, 1))
					}
					n.leave()
				}
				awaitSettled(t, a)
				got := onDisk(t, a.Dir)
				slack := int64(c.streams) * 64 << 10 // retransmissions
				if direction == transfer.Up {        // arrived, and not read
					slack = int64(c.streams) * 8 << 20
				}
				if got.Bytes < c.atLeast || got.Bytes > ordered+slack || c.moved == 0 && got.Bytes > 0 {
					t.Errorf("charged %d bytes afterwards, want at least %d", got.Bytes, c.atLeast)
				}
			})
		}
	}
}

// TestServe_HostileHubStaysWithinTheDay has a hub order, and a near end leave, until the day's bytes are used. The near
// end sends what it can, or reads all it gets.
func TestServe_HostileHubStaysWithinTheDay(t *testing.T) {
	const day = 20 << 20
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(direction), func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, Limits{Budget: recheck.Budget{Bytes: day, Time: time.Hour}})
			a.orders.Every = time.Nanosecond // its limit is another test's
			a.orders.Burst = math.MaxInt32
			var moved, transfers atomic.Int64
			for range 200 {
				o := order(bus.RoleServe)
				o.Spec.Bytes = 2 << 20
				o.Spec.Streams = 2
				switch a.order(bus.Encode(o)).(bus.OrderReply).Refused {
				case mesh.BytesBudget:
					continue
				case mesh.Busy:
					time.Sleep(time.Millisecond) // the server ends the session before
					continue
				}
				for range 5 {
					n, err := enter(t, a.server.Addr().String(), o.Key)
					if err != nil {
						break
					}
					tokens, err := n.offer(offerOf(direction, 0, 2))
					if err != nil {
						n.leave()
						break
					}
					transfers.Add(1)
					var moving sync.WaitGroup
					for _, token := range tokens {
						conn := n.stream(token)
						moving.Go(func() {
							if direction == transfer.Up {
								push(conn, 1<<40)
							} else {
								moved.Add(pull(conn, 1<<40))
							}
						})
					}
					moving.Wait()
					n.leave()
				}
			}
			awaitSettled(t, a)
			used := a.spent.today(time.Now())
			if direction == transfer.Down && moved.Load() > day {
				t.Errorf("%d bytes were sent in a day of %d", moved.Load(), day)
			}
			// Each transfer may leave unread what its two windows hold.
			if used.Bytes < moved.Load() || used.Bytes < day-4<<20 || used.Bytes > day+16<<20 {
				t.Errorf("%d bytes are counted, %d were read, in %d transfers", used.Bytes, moved.Load(), transfers.Load())
			}
			if disk := onDisk(t, a.Dir); disk != used {
				t.Errorf("on the disk: %+v; in memory: %+v", disk, used)
			}
		})
	}
}

// TestServe_CountsTransfersAtTheOffer has many sessions with a run's key at the same time leave after the offer
// and come again. Two offers are accepted in all.
func TestServe_CountsTransfersAtTheOffer(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	o := accept(t, a, nil)
	var accepted atomic.Int64
	var coming sync.WaitGroup
	for i := range 12 {
		coming.Go(func() {
			for range 3 {
				n, err := enter(t, a.server.Addr().String(), o.Key)
				if err != nil {
					return
				}
				direction := transfer.Up
				if i%2 > 0 {
					direction = transfer.Down
				}
				if _, err := n.offer(offerOf(direction, 1e5, 1)); err == nil {
					accepted.Add(1)
				}
				n.leave()
			}
		})
	}
	coming.Wait()
	if n := accepted.Load(); n != maxTransfers {
		t.Errorf("%d offers were accepted, want %d", n, maxTransfers)
	}
	awaitSettled(t, a)
	if used := onDisk(t, a.Dir); used.Bytes != 0 {
		t.Errorf("nothing moved, and charged is %+v", used)
	}
	if n := len(a.holders()); n > 0 {
		t.Errorf("%d keys are valid", n)
	}
}

// TestServe_RefusesMoreThanAnOrderAsks offers transfers whose packets cost more than their payload, and UDP.
func TestServe_RefusesMoreThanAnOrderAsks(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	o := accept(t, a, func(o *bus.Order) { o.Spec.Streams = 2 })
	n := must.Get(enter(t, a.server.Addr().String(), o.Key))(t)
	for name, change := range map[string]func(s *transfer.Spec){
		"requests of one byte": func(s *transfer.Spec) { s.Program.RequestResponse = true },
		"writes of one byte":   func(s *transfer.Spec) { s.Program.WriteBytes = 1; s.Far.NoDelay = true },
		"small segments":       func(s *transfer.Spec) { s.Far.MSS = 88 },
		"a large window":       func(s *transfer.Spec) { s.Far.ReceiveBuffer = 1 << 29 },
		"more streams":         func(s *transfer.Spec) { s.Streams = 3 },
		"more bytes":           func(s *transfer.Spec) { s.Bytes = o.Spec.Bytes + 1 },
		"more time":            func(s *transfer.Spec) { s.Time = time.Minute },
	} {
		spec := offerOf(transfer.Up, 1e5, 1)
		change(&spec)
		if _, err := n.offer(spec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var reply struct{ Error string }
	must.Do(t, n.write('G', struct{}{}))
	if err := n.read('A', &reply); err != nil || reply.Error == "" {
		t.Errorf("UDP was granted: %v", err)
	}
	if used := onDisk(t, a.Dir); used != (Use{}) {
		t.Errorf("charged %+v", used)
	}
}

// TestServe_TimeIsCut checks that a transfer without an end of its own ends with the order's time.
func TestServe_TimeIsCut(t *testing.T) {
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(direction), func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, Limits{})
			o := accept(t, a, func(o *bus.Order) {
				o.Spec.Bytes = 1 << 40
				o.Spec.Time = 50 * time.Millisecond
			})
			n := must.Get(enter(t, a.server.Addr().String(), o.Key))(t)
			tokens := must.Get(n.offer(transfer.Spec{Direction: direction, Bytes: 1 << 40}))(t)
			conn := n.stream(tokens[0])
			if direction == transfer.Up {
				push(conn, 1000) // and stays silent
			} else {
				pull(conn, 1000)
			}
			awaitSettled(t, a)
			if used := a.spent.today(time.Now()); used.Time < time.Second || used.Time > 15*time.Second {
				t.Errorf("it took %v", used.Time)
			}
		})
	}
}

// TestServe_KilledStaysCharged kills an agent during a transfer. The next process has the maximum in its ledger, and
// refuses what goes beyond.
func TestServe_KilledStaysCharged(t *testing.T) {
	const dirVariable = "FULLPIPE_TEST_AGENT_DIR"
	limits := Limits{Budget: recheck.Budget{Bytes: 9e6}}
	if dir := os.Getenv(dirVariable); dir != "" {
		a := newAgentIn(t, dir, limits)
		o := accept(t, a, func(o *bus.Order) { o.Spec.Bytes = 4e6 })
		fmt.Println("KEY", o.Key, a.server.Addr())
		<-t.Context().Done()
		return
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServe_KilledStaysCharged$")
	cmd.Env = append(os.Environ(), dirVariable+"="+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var key, address string
	must.Get(fmt.Fscanf(out, "KEY %s %s\n", &key, &address))(t)
	n := must.Get(enter(t, address, key))(t)
	tokens := must.Get(n.offer(offerOf(transfer.Up, 4e6, 1)))(t)
	push(n.stream(tokens[0]), 100_000)
	cmd.Process.Kill()
	cmd.Wait()
	if used := onDisk(t, dir); used.Bytes != 4e6 {
		t.Errorf("after the kill: %+v", used)
	}
	again := newAgentIn(t, dir, limits)
	o := order(bus.RoleServe)
	o.Spec.Bytes = 3e6
	if reply := again.order(bus.Encode(o)).(bus.OrderReply); reply.Refused != mesh.BytesBudget {
		t.Errorf("6 MB more of 9: %+v", reply)
	}
	o = accept(t, again, func(o *bus.Order) { o.Spec.Bytes = 2e6 })
	if _, err := enter(t, again.server.Addr().String(), key); err == nil {
		t.Error("the run's key is valid after the kill")
	}
	if _, err := enter(t, again.server.Addr().String(), o.Key); err != nil {
		t.Error(err)
	}
}

// TestTest_ChargedBeforeTheFirstConnection checks the near end's charge while its run takes place, and afterwards.
func TestTest_ChargedBeforeTheFirstConnection(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	during := make(chan Use, 1)
	a.Measure = func(_ context.Context, o bus.Order, used *Use) ([]byte, error) {
		during <- onDisk(t, a.Dir)
		used.Bytes = 1234
		used.Connections = 3
		if o.Spec.Bytes != 62500 { // 2 s at 250 kbit/s
			t.Errorf("it measures with %d bytes", o.Spec.Bytes)
		}
		return nil, &UnreachableError{Attempts: []Attempt{{o.Peers[0], net.ErrClosed}}}
	}
	o := order(bus.RoleTest)
	o.Spec.Bps = 250e3
	o.Spec.Time = time.Second
	if reply := a.order(bus.Encode(o)).(bus.OrderReply); reply.Refused != "" {
		t.Fatal(reply.Refused, reply.Detail)
	}
	if got := <-during; got != (Use{2 * 62500, 2 * time.Second, 3}) {
		t.Errorf("during the run: %+v", got)
	}
	awaitSettled(t, a)
	if got := onDisk(t, a.Dir); got.Bytes != 1234 || got.Connections != 3 {
		t.Errorf("afterwards: %+v", got)
	}
}

// failing returns a Measure that makes one connection to each address.
func failing(connections *int, fail *bool) func(context.Context, bus.Order, *Use) ([]byte, error) {
	return func(_ context.Context, o bus.Order, used *Use) ([]byte, error) {
		used.Connections = len(o.Peers)
		*connections += len(o.Peers)
		if *fail {
			return nil, &UnreachableError{Attempts: []Attempt{{o.Peers[0], net.ErrClosed}}}
		}
		return []byte("{}"), nil
	}
}
