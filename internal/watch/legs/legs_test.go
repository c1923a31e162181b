package legs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

const ms = time.Millisecond

// A source returns the bytes that arrive in the millisecond at t.
type source func(t time.Duration) float64

// steady brings chunks at a constant rate, the first at a random time.
func steady(r *rand.Rand, bps, chunk float64) source {
	owed := chunk * r.Float64()
	return func(time.Duration) float64 {
		owed += bps / 8000
		whole := math.Floor(owed/chunk) * chunk
		owed -= whole
		return whole
	}
}

// uneven brings data at a rate that changes all the time, as a congestion window and other traffic make it.
func uneven(r *rand.Rand, bps, chunk float64) source {
	rate := bps
	owed := 0.0
	return func(t time.Duration) float64 {
		if t%(37*ms) == 0 {
			rate = bps * (0.5 + r.Float64())
		}
		owed += rate / 8000
		whole := math.Floor(owed/chunk) * chunk
		owed -= whole
		return whole
	}
}

// stopping brings data between stops of random lengths.
func stopping(r *rand.Rand, from source) source {
	var until time.Duration
	on := false
	return func(t time.Duration) float64 {
		if t >= until {
			on = !on
			until = t + time.Duration(300+r.IntN(600))*ms
		}
		if !on {
			return 0
		}
		return from(t)
	}
}

// pair has the two series of a watch: the second connection is looked up right after the first.
type pair struct {
	in, out Series
	next    time.Duration
	late    int // milliseconds by which a busy machine delays a sample at the most
}

func (p *pair) sample(r *rand.Rand, t time.Duration, read, written float64) {
	if t < p.next {
		return
	}
	p.next = t + 50*ms + time.Duration(r.IntN(p.late+1))*ms
	p.in.At = append(p.in.At, t)
	p.in.Bytes = append(p.in.Bytes, int64(read))
	p.out.At = append(p.out.At, t+time.Duration(20+r.IntN(200))*time.Microsecond)
	p.out.Bytes = append(p.out.Bytes, int64(written))
}

// proxy is a program that copies blocks from one socket to another.
type proxy struct {
	block, overhead float64 // bytes; the factor by which records add to them
	whole           bool    // it waits for whole blocks
	clientBps       float64 // the path to the client
	sendBuffer      float64 // of the socket to the client: written again when a third is free
	late            int
}

// pass returns what the proxy passes on in seven seconds.
func (x *proxy) pass(r *rand.Rand, up source) *pair {
	p := &pair{late: x.late}
	var arrived, read, buffered, written, queued float64
	writable := true
	for t := time.Duration(0); t < 7*time.Second; t += ms {
		arrived += up(t)
		queued = max(0, queued-x.clientBps/8000)
		writable = writable && queued < x.sendBuffer || queued < x.sendBuffer*2/3
		for ; writable && arrived-read > 0; writable = queued < x.sendBuffer {
			n := min(x.block, arrived-read)
			read += n
			buffered += n
			if x.whole {
				n = math.Floor(buffered/x.block) * x.block
			}
			buffered -= n
			written += n * x.overhead
			queued += n * x.overhead
		}
		p.sample(r, t, read, written)
	}
	return p
}

// apart is what two transfers move that have nothing to do with each other.
func apart(r *rand.Rand, down, up source, late int) *pair {
	p := &pair{late: late}
	var read, written float64
	for t := time.Duration(0); t < 7*time.Second; t += ms {
		read += down(t)
		written += up(t)
		p.sample(r, t, read, written)
	}
	return p
}

// logarithmic draws from low to high.
func logarithmic(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

// TestJoined draws proxies and programs with two transfers of their own, at random rates, blocks, buffers and clocks.
func TestJoined(t *testing.T) {
	regular := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 53))
		bps := logarithmic(r, 500e3, 500e6)
		chunk := logarithmic(r, 1448, 65160)
		late := []int{0, 5, 100}[seed%3]
		block := logarithmic(r, 1024, 65536)
		x := &proxy{block: block, overhead: 1 + 0.01*r.Float64(), clientBps: 10 * bps,
			sendBuffer: logarithmic(r, 87380, 1e6), late: late}
		slow := *x
		slow.clientBps = bps
		cipher := *x
		cipher.clientBps = 5e9
		cipher.block = 32768
		cipher.whole = true
		joined := map[string]*pair{
			"upstream limits":         x.pass(r, steady(r, bps, chunk)),
			"upstream limits, uneven": x.pass(r, uneven(r, bps, chunk)),
			"upstream stops and goes": x.pass(r, stopping(r, steady(r, bps, chunk))),
			"a cipher, uneven":        cipher.pass(r, uneven(r, max(bps, 12e6), chunk)),
			"client limits":           slow.pass(r, steady(r, 10*bps, chunk)),
		}
		for name, p := range joined {
			if _, ok := SameData(p.in, p.out); !ok {
				t.Errorf("%s: not joined: seed %d, %.3g Mbit/s, chunk %.0f, block %.0f, late %d: %s", name, seed, bps/1e6, chunk,
					block, late, describe(p))
			}
		}
		other := bps * (1 + 0.01*r.NormFloat64())
		separate := map[string]*pair{
			"two at the same rate":        apart(r, steady(r, bps, chunk), steady(r, bps, block), late),
			"two at nearly the same rate": apart(r, steady(r, bps, chunk), steady(r, other, block), late),
			"two uneven at the same rate": apart(r, uneven(r, bps, chunk), uneven(r, bps, chunk), late),
			"a steady and an uneven one":  apart(r, steady(r, bps, chunk), uneven(r, bps, chunk), late),
			"two that stop and go": apart(r, stopping(r, steady(r, bps, chunk)),
				stopping(r, steady(r, bps, chunk)), late),
			"a twentieth more": apart(r, steady(r, bps, chunk), steady(r, 1.05*bps, chunk), late),
		}
		stops := x.pass(r, stopping(r, steady(r, max(bps, 8e6), chunk)))
		if len(stops.in.stops()) >= threshold.LegStops && !SameStops(stops.in, compressed(stops.out)) {
			regular++
		}
		for name, p := range separate {
			if _, ok := SameData(p.in, p.out); ok {
				t.Errorf("%s: joined: seed %d, %.3g Mbit/s, chunk %.0f, block %.0f, late %d: %s", name, seed, bps/1e6, chunk,
					block, late, describe(p))
			}
			if SameStops(p.in, p.out) {
				t.Errorf("%s: stops joined: seed %d", name, seed)
			}
		}
	}
	if regular > 3 { // five stops may be as regular as a clock's by chance
		t.Errorf("the stops of %d pairs are not joined", regular)
	}
}

// compressed returns a series of a third of the bytes.
func compressed(s Series) Series {
	of := Series{At: s.At}
	for _, bytes := range s.Bytes {
		of.Bytes = append(of.Bytes, bytes/3)
	}
	return of
}

func describe(p *pair) string {
	n := len(p.in.At) - 1
	return fmt.Sprintf("%d samples, %d, %d bytes", n+1, p.in.Bytes[n]-p.in.Bytes[0], p.out.Bytes[n]-p.out.Bytes[0])
}
