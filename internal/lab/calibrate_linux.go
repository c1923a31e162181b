package lab

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// Reading a device, firing a timer and waking a program take time that no clock here measures. When a lab starts, it
// measures this extra round trip time with a few echo requests. Packets then leave half of it before they are due.

// calibration is the measured result.
type calibration struct {
	floor time.Duration // round trip on a link without delay: the least possible
	early int64         // ns before the due time that a packet leaves
}

const (
	// usualEarly applies to hosts that do not answer echoes: measured on an idle machine.
	usualEarly = 70_000 // ns
	// maxEarly limits the effect of a busy moment.
	maxEarly = 500_000 // ns
	// probeDelay is the largest delay to measure. Longer idle times let processors sleep deeper, but a link in use
	// wakes up each tick.
	probeDelay  = time.Millisecond
	probeEchoes = 12
	// probePause separates echoes: without a pause everything is still awake.
	probePause = 2 * time.Millisecond
	// maxEchoDelay is how late a busy machine may answer.
	maxEchoDelay = time.Second
	// Two rounds of echoes must agree. A disturbance delays one round and only ever makes it longer.
	probeRounds = 6
	roundsAgree = 25 * time.Microsecond
)

// calibrate sends echoes between the hosts over the link and passes it the result.
func (e *inside) calibrate(p *link.Path) error {
	c := calibration{early: usualEarly}
	delay := min(p.RTT/2, probeDelay)
	least, err := e.echoes(0)
	if err == nil {
		c.floor = least
		var with time.Duration
		with, err = e.echoes(delay)
		if err == nil && delay > 0 {
			c.early = min(max(0, int64(with-2*delay)/2), maxEarly)
		}
	}
	if err != nil && !errors.Is(err, errNoEcho) {
		return err
	}
	_, err = e.link.ask(request{Op: opCarry, Early: c.early, Floor: c.floor})
	return err
}

var errNoEcho = errors.New("no echo")

// echoes returns the round trip time over a link with that delay each way: the least of a few rounds, where two
// must agree.
func (e *inside) echoes(delay time.Duration) (time.Duration, error) {
	if _, err := e.link.ask(request{Op: opProbe, Delay: delay}); err != nil {
		return 0, err
	}
	var rounds []time.Duration
	for len(rounds) < probeRounds {
		usual, err := e.round(delay)
		if err != nil {
			return 0, err
		}
		rounds = append(rounds, usual)
		slices.Sort(rounds)
		if len(rounds) > 1 && rounds[1]-rounds[0] <= roundsAgree {
			break
		}
	}
	return rounds[0], nil
}

// round returns the median of some consecutive round trips.
func (e *inside) round(delay time.Duration) (usual time.Duration, err error) {
	var trips []time.Duration
	err = onThread(func() error {
		if err := unix.Setns(e.hosts[near].namespace, unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return errNoEcho
		}
		defer unix.Close(fd)
		unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		patience := unix.NsecToTimeval(int64(2*delay + maxEchoDelay))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
			return err
		}
		to := &unix.SockaddrInet4{Addr: FarAddr.As4()}
		for i := range probeEchoes + 1 {
			request := []byte{8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // ICMP echo request; the kernel fills in the rest
			binary.BigEndian.PutUint16(request[6:], uint16(i))
			time.Sleep(probePause)
			start := time.Now()
			if err := unix.Sendto(fd, request, 0, to); err != nil {
				return errNoEcho
			}
			var back [64]byte
			if n, _, err := unix.Recvfrom(fd, back[:], 0); err != nil || n < 8 || binary.BigEndian.Uint16(back[6:]) != uint16(
				i) {
				return errNoEcho
			}
			if i > 0 { // the first one runs with cold caches
				trips = append(trips, time.Since(start))
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// probe replaces the lanes by those of a link that only delays.
func (c *carrier) probe(delay time.Duration) {
	bare := link.Path{Up: link.Config{Delay: delay}, Down: link.Config{Delay: delay}}
	up, down := bare.Lanes()
	c.use(up, down, nil, 0)
}

// use replaces the lanes of both directions and resets their counters. No packets may be in flight: they would be
// lost.
func (c *carrier) use(up, down *link.Lane, t *tap, early int64) {
	for d, lane := range map[*duct]*link.Lane{c.up: up, c.down: down} {
		d.loop.do(func() {
			d.lane = lane
			d.tap = t
			d.late = tally{}
			d.loop.early = early
			d.loop.late.stalls = stalls{}
		})
	}
}
